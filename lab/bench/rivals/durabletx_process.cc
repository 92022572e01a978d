// The program `durabletx RIVAL`: serves a contender on a transactional memory of durabletx (see
// durabletx.cc). A rival's name that ends in -seq runs the memory's sequential transactions, any
// other name the concurrent ones.
#include <bench/contender_process.h>
#include <bench/drive.h>
#include <bench/rivals/durabletx.h>
#include <bench/value.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace stele::bench::durabletx {
namespace {

using workloads::operation;

constexpr std::size_t fill_bytes = 8192;  // values in each transaction that fills

class durabletx_contender final : public contender {
 public:
  durabletx_contender(const task& t, bool sequential, std::unique_ptr<workloads::workload> w)
      : task_(t),
        draws_(std::move(w)),
        generators_(make_generators(t)),
        structure_(
            make_structure(t.workload, t.parameters.keys, t.parameters.value_size, sequential)) {}

  std::string name() const override { return memory_name(); }
  std::string media() const override { return task_.media; }
  durability_level durability() const override { return {}; }

  result<> set_up() override {
    if (!structure_->set_up()) return std::unexpected(error{errc::full, "its pool is full"});
    std::vector<operation> some;
    const auto put_some = [&] {
      structure_->apply(some.data(), some.size());
      some.clear();
    };
    const auto put = [&](std::uint64_t key, std::uint64_t word) -> result<> {
      some.push_back({operation::kind::put, key, word});
      if (some.size() * task_.parameters.value_size >= fill_bytes) put_some();
      return {};
    };
    const workloads::key_space keys(task_.parameters);
    result<> filled;
    if (is_array())
      for (std::uint64_t i = 0; i < keys.size(); ++i) filled = put(i, keys.word_at_start(i));
    else
      filled = fill_half(task_.parameters, put);
    if (!some.empty()) put_some();
    if (is_array()) digest_ = structure_->digest();
    return filled;
  }
  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned) {
      return draw_and_apply(*draws_, task_.ops_per_tx,
                            [this](std::span<const operation> ops) -> result<> {
                              structure_->apply(ops.data(), ops.size());
                              return {};
                            });
    });
  }
  footprint space() override { return {structure_->space_bytes(), live_bytes_of(task_)}; }
  // An array holds the values that set_up wrote, in some order.
  result<> check() override {
    if (structure_->is_valid() && (!is_array() || structure_->digest() == digest_)) return {};
    return std::unexpected(
        error{errc::corrupt, "the structure in its pool is not what the operations leave"});
  }

 private:
  bool is_array() const { return task_.workload == "sps"; }

  const task task_;
  const std::unique_ptr<workloads::workload> draws_;  // only draws operations; never attached
  std::vector<base::rng> generators_;
  const std::unique_ptr<structure> structure_;
  std::uint64_t digest_ = 0;
};

contender_result make(const task& t, bool sequential) {
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  return std::make_unique<durabletx_contender>(t, sequential, std::move(*w));
}

}  // namespace
}  // namespace stele::bench::durabletx

int main(int argc, char** argv) {
  using namespace stele::bench;
  if (argc != 2) durabletx::give_up("usage: durabletx RIVAL, started by stele compare");
  const bool sequential = std::string_view(argv[1]).ends_with("-seq");
  const int status = serve_contender(contender_socket,
                                     [&](const task& t) { return durabletx::make(t, sequential); });
  std::fflush(nullptr);
  ::_exit(status);  // a memory's destructor prints, and unmapping takes time
}
