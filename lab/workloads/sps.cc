// sps on pools, and its model.
#include <workloads/entries.h>
#include <workloads/sps_kind.h>

namespace stele::workloads {

namespace {

class array_model final : public model {
 public:
  explicit array_model(const key_space& keys) : value_size_(keys.params().value_size) {
    for (std::uint64_t i = 0; i < keys.size(); ++i) words_.push_back(keys.word_at_start(i));
  }
  void apply(const operation& op) override {
    if (op.what == operation::kind::swap) std::swap(words_[op.a], words_[op.b]);
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) sum += digest_word(i, words_[i], value_size_);
    return sum;
  }

 private:
  std::size_t value_size_;
  std::vector<std::uint64_t> words_;
};

}  // namespace

std::unique_ptr<model> make_sps_model(const key_space& keys) {
  return std::make_unique<array_model>(keys);
}

constinit const workload_entry sps_entry = {"sps", make_sized<workload, pool_run, sps_kind>};

}  // namespace stele::workloads
