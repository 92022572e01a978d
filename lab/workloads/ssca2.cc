// ssca2 on pools, and its model.
#include <workloads/entries.h>
#include <workloads/ssca2_kind.h>

#include <list>

namespace stele::workloads {

namespace ssca2 {
namespace {

class graph_model final : public model {
 public:
  explicit graph_model(const key_space& keys)
      : value_size_(keys.params().value_size), vertices_(generator(keys).vertices()) {
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
      const auto e = edge_at_start(keys, i);
      if (!e) continue;
      vertex& v = vertices_[e->from];
      v.edges.push_front({e->to, keys.word_at_start(i)});
      v.max_degree = room_at_start(static_cast<std::uint32_t>(v.edges.size()));
    }
  }
  void apply(const operation& op) override {
    if (op.what != operation::kind::toggle) return;
    const change c(op);
    vertex& v = vertices_[c.from];
    if (c.inserts_at(v.edges.size(), v.max_degree)) return v.edges.push_front({c.to, op.b});
    v.edges.erase(std::next(v.edges.begin(),
                            static_cast<std::ptrdiff_t>(std::min(c.position, v.edges.size() - 1))));
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (std::size_t from = 0; from < vertices_.size(); ++from) {
      for (const auto& [to, word] : vertices_[from].edges)
        sum += digest_word(edge_key(from, to), word, value_size_);
    }
    return sum;
  }

 private:
  struct vertex {
    std::list<std::pair<std::uint32_t, std::uint64_t>> edges;  // newest first
    std::uint64_t max_degree = 0;
  };
  std::size_t value_size_;
  std::vector<vertex> vertices_;
};

}  // namespace

std::unique_ptr<model> make_graph_model(const key_space& keys) {
  return std::make_unique<graph_model>(keys);
}

}  // namespace ssca2

constinit const workload_entry ssca2_entry = {"ssca2",
                                              make_sized<workload, pool_run, ssca2::benchmark>};

}  // namespace stele::workloads
