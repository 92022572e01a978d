// The upper limit: the same structures and operations in ordinary memory, without pool,
// transactions or durability.
#include <bench/drive.h>
#include <workloads/apart/volatile.h>

namespace stele::bench {
namespace {

using workloads::operation;

class volatile_contender final : public contender {
 public:
  volatile_contender(const task& t, std::unique_ptr<workloads::volatile_run> r)
      : task_(t), run_(std::move(r)), generators_(make_generators(t)) {}

  std::string name() const override { return "volatile"; }
  std::string media() const override { return "memory"; }
  durability_level durability() const override { return durability_level::none; }

  result<> set_up() override {
    run_->set_up();
    return {};
  }
  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned) {
      return draw_and_apply(*run_, task_.ops_per_tx,
                            [this](std::span<const operation> ops) -> result<> {
                              run_->apply(ops);
                              return {};
                            });
    });
  }
  footprint space() override { return {std::nullopt, live_bytes_of(task_)}; }

 private:
  const task task_;
  const std::unique_ptr<workloads::volatile_run> run_;
  std::vector<base::rng> generators_;
};

}  // namespace

contender_result make_volatile(const task& t) {
  if (t.threads != 1)
    return std::unexpected(
        error{errc::unsupported, "the volatile structures are not thread-safe: one thread only"});
  auto r = workloads::make_volatile(t.workload, t.parameters);
  if (!r) return std::unexpected(std::move(r.error()));
  return std::make_unique<volatile_contender>(t, std::move(*r));
}

}  // namespace stele::bench
