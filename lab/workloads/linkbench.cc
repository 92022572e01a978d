// linkbench on pools, and its model.
#include <workloads/entries.h>
#include <workloads/linkbench_kind.h>

#include <list>

namespace stele::workloads {

namespace linkbench {
namespace {

class social_model final : public model {
 public:
  social_model(const id_choice& ids, const key_space& keys)
      : value_size_(keys.params().value_size), nodes_(ids.nodes()), lists_(ids.nodes() * types) {
    for (std::uint64_t id = 0; id < nodes_.size(); ++id) nodes_[id].word = keys.word_at_start(id);
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
      const auto l = ids.at_start(keys, i);
      if (!l || lists_[l->list].links.size() == links_at_start || find(l->list, l->to) != nullptr)
        continue;
      lists_[l->list].links.push_front({l->to, 0, l->word});
    }
    for (list& l : lists_) l.room = room_at_start(static_cast<std::uint32_t>(l.links.size()));
  }
  void apply(const operation& op) override {
    using enum operation::kind;
    if (only_reads(op)) return;
    if (op.what == put) {
      nodes_[op.a] = {nodes_[op.a].version + 1, op.b};
      return;
    }
    const change c(op);
    auto& links = lists_[c.list].links;
    if (op.what == insert) return add(c, op.b);
    if (links.empty()) return;
    const auto chosen =
        std::next(links.begin(), static_cast<std::ptrdiff_t>(c.position % links.size()));
    if (op.what == erase) {
      links.erase(chosen);
    } else {
      *chosen = {chosen->to, chosen->version + 1, op.b};
    }
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < lists_.size(); ++i)
      for (const link& l : lists_[i].links)
        sum += digest_word(digest_key(1, i, l.to) + base::mix(l.version), l.word, value_size_);
    for (std::size_t id = 0; id < nodes_.size(); ++id)
      sum += digest_word(digest_key(2, id, nodes_[id].version), nodes_[id].word, value_size_);
    return sum;
  }

 private:
  struct node {
    std::uint64_t version = 0, word = 0;
  };
  struct link {
    std::uint64_t to, version, word;
  };
  struct list {
    std::list<link> links;  // newest first
    std::uint64_t room = 0;
  };

  link* find(std::uint64_t i, std::uint64_t to) {
    const auto found = std::ranges::find(lists_[i].links, to, &link::to);
    return found == lists_[i].links.end() ? nullptr : &*found;
  }
  void add(const change& c, std::uint64_t word) {
    if (link* const there = find(c.list, c.to)) {
      *there = {c.to, there->version + 1, word};
      return;
    }
    list& l = lists_[c.list];
    if (l.links.size() == l.room) l.links.pop_back();
    l.links.push_front({c.to, 0, word});
  }

  std::size_t value_size_;
  std::vector<node> nodes_;
  std::vector<list> lists_;
};

}  // namespace

std::unique_ptr<model> make_social_model(const id_choice& ids, const key_space& keys) {
  return std::make_unique<social_model>(ids, keys);
}

}  // namespace linkbench

constinit const workload_entry linkbench_entry = {"linkbench", linkbench::make<workload, pool_run>,
                                                  linkbench::make<workload, coalescing_run>};

}  // namespace stele::workloads
