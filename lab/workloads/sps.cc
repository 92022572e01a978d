// sps: swaps of two random elements of an array. Element i starts as a value made from i.
#include <stele/array.h>
#include <workloads/entries.h>
#include <workloads/native.h>
#include <workloads/run.h>

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

template <std::size_t N>
struct sps {
  static constexpr std::string_view name = "sps";
  template <class Memory>
  using root = basic_array<value_of_size<N, Memory>, Memory>;

  template <class V, class Memory>
  static void prepare(basic_array<V, Memory>& r, const key_space& keys) {
    r.resize(keys.size());
  }
  template <class V, class Memory>
  static void fill(basic_array<V, Memory>& r, const key_space& keys, std::uint64_t i) {
    element<V, Memory>::assign(r[i], value_from<V>(keys.word_at_start(i)));
  }
  template <class V, class Memory>
  static void apply(basic_array<V, Memory>& r, const key_space&, const operation& op) {
    r.swap_elements(op.a, op.b);
  }
  template <class V, class Memory>
  static void read(const basic_array<V, Memory>& r, const operation& op) {
    do_not_optimize(element<V, Memory>::get(r[op.a]));
  }
  template <class V, class Memory>
  static std::uint64_t digest(const basic_array<V, Memory>& r) {
    std::uint64_t sum = 0, i = 0;
    r.for_each(
        [&](const auto& stored) { sum += digest_value(i++, element<V, Memory>::get(stored)); });
    return sum;
  }

  static operation draw(const key_space& keys, base::rng& random) {
    const bool reads = keys.draws_read(random);
    const std::uint64_t a = keys.draw(random);
    if (reads) return {operation::kind::read, a, 0};
    return {operation::kind::swap, a, keys.draw(random)};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) {
    return std::make_unique<array_model>(keys);
  }
};

}  // namespace

constinit const workload_entry sps_entry = {"sps", make_sized<workload, pool_run, sps>,
                                            make_sized<volatile_run, plain_run, sps>,
                                            make_native_sized<sps>};

}  // namespace stele::workloads
