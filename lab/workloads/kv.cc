// kv on pools, and its model.
#include <workloads/entries.h>
#include <workloads/kv_kind.h>

#include <unordered_map>

namespace stele::workloads {

namespace kv_texts {
namespace {

class kv_model final : public model {
 public:
  explicit kv_model(const key_space& keys)
      : value_size_(keys.params().value_size), append_size_(append_size(keys)) {
    for (std::uint64_t k = 0; k < keys.size(); ++k) {
      if (keys.present_at_start(k)) texts_[k] = text(keys.word_at_start(k), value_size_);
    }
  }
  void apply(const operation& op) override {
    if (op.what == operation::kind::put) texts_[op.a] = text(op.b, value_size_);
    if (op.what == operation::kind::append) texts_[op.a] += text(op.b, append_size_);
    if (op.what == operation::kind::erase) texts_.erase(op.a);
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (const auto& [key, value] : texts_) sum += digest_text(key_text(key), value);
    return sum;
  }

 private:
  static std::string text(std::uint64_t word, std::size_t size) {
    return std::string(value_text(word, size));
  }

  std::size_t value_size_, append_size_;
  std::unordered_map<std::uint64_t, std::string> texts_;
};

}  // namespace

std::unique_ptr<model> make_kv_model(const key_space& keys) {
  return std::make_unique<kv_model>(keys);
}

}  // namespace kv_texts

constinit const workload_entry kv_entry = {"kv", make_run<workload, pool_run<kv_texts::benchmark>>,
                                           make_run<workload, coalescing_run<kv_texts::benchmark>>};

}  // namespace stele::workloads
