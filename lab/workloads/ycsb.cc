// ycsb-a to ycsb-f on pools, and their model.
#include <workloads/entries.h>
#include <workloads/ycsb_kind.h>

#include <unordered_map>

namespace stele::workloads {

namespace ycsb {
namespace {

class record_model final : public model {
 public:
  explicit record_model(const key_space& keys)
      : value_size_(keys.params().value_size), present_{keys.size(), 0} {
    for (std::uint64_t k = 0; k < keys.size(); ++k) put(k, keys.word_at_start(k));
  }
  void apply(const operation& op) override {
    if (op.what == operation::kind::put) put(op.a, op.b);
    if (op.what == operation::kind::read_modify) put(op.a, modified(words_[op.a], op.b));
    if (op.what != operation::kind::insert) return;
    put(present_.next(), op.b);
    ++present_.inserted;
  }
  std::uint64_t digest() const override { return base::mix(present_.inserted) + sum_; }

 private:
  void put(std::uint64_t key, std::uint64_t word) {
    const auto [at, fresh] = words_.try_emplace(key, word);
    if (!fresh) sum_ -= digest_word(key, at->second, value_size_);
    sum_ += digest_word(key, at->second = word, value_size_);
  }

  std::size_t value_size_;
  key_range present_;
  std::unordered_map<std::uint64_t, std::uint64_t> words_;
  std::uint64_t sum_ = 0;  // of their digests
};

template <char Letter>
constexpr workload_entry entry_of = {mixes[Letter - 'a'].name, make<Letter, workload, pool_run>,
                                     make<Letter, workload, coalescing_run>};

}  // namespace

std::unique_ptr<model> make_record_model(const key_space& keys) {
  return std::make_unique<record_model>(keys);
}

}  // namespace ycsb

constinit const workload_entry ycsb_entries[] = {ycsb::entry_of<'a'>, ycsb::entry_of<'b'>,
                                                 ycsb::entry_of<'c'>, ycsb::entry_of<'d'>,
                                                 ycsb::entry_of<'e'>, ycsb::entry_of<'f'>};

}  // namespace stele::workloads
