// kv, tpcc and store on ordinary memory: the workloads whose types do not depend on the value size.
#include <containers/kv_store.h>
#include <workloads/apart/entries.h>
#include <workloads/apart/plain_run.h>
#include <workloads/kv_kind.h>
#include <workloads/store_kind.h>
#include <workloads/tpcc_kind.h>

namespace stele::workloads {

namespace {

class plain_store_run final : public volatile_run {
 public:
  explicit plain_store_run(const parameters& p) : keys_(p) {}

  void set_up() override {
    (void)store::fill(keys_.params(), [&](std::uint64_t number, std::uint64_t word) -> result<> {
      store_->put(store::key(number), store::value(word, keys_.params().value_size, value_buffer_));
      return {};
    });
  }
  operation draw(base::rng& random) const override { return store::draw(keys_, random); }
  void apply(std::span<const operation> operations) override {
    for (const operation& op : operations)
      store::apply_to(*store_, keys_.params().value_size, op, value_buffer_, read_buffer_);
  }
  std::uint64_t digest() override {
    std::uint64_t sum = 0;
    store_->for_each({}, {}, [&](std::string_view key, std::string_view value) {
      sum += store::digest_pair(key, value);
      return true;
    });
    return sum;
  }

 private:
  using twin = detail::basic_kv_store<plain_memory>;
  key_space keys_;
  std::string value_buffer_, read_buffer_;
  std::unique_ptr<twin> store_ = std::make_unique<twin>();
};

}  // namespace

constinit const apart_entry kv_apart = {"kv",
                                        make_run<volatile_run, plain_run<kv_texts::benchmark>>};

constinit const apart_entry tpcc_apart = {"tpcc",
                                          make_run<volatile_run, plain_run<tpcc::benchmark>>};

constinit const apart_entry store_apart = {"store", make_run<volatile_run, plain_store_run>};

}  // namespace stele::workloads
