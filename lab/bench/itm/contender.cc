// Atomic blocks as a contender: the same pool, mechanism, operations and content as Stele's own
// contender, accessed by compiled loads and stores instead of field<T>.
#include <bench/drive.h>
#include <bench/itm/contender.h>
#include <bench/itm/structures.h>
#include <fmt/format.h>
#include <stele/itm.h>
#include <workloads/key_space.h>
#include <workloads/value.h>

#include <algorithm>
#include <filesystem>

namespace stele::bench {
namespace {

using workloads::operation;

std::uint64_t start_word(const void* keys, std::uint64_t i) {
  return static_cast<const workloads::key_space*>(keys)->word_at_start(i);
}

class itm_contender final : public contender {
 public:
  itm_contender(const task& t, std::string mechanism, std::unique_ptr<workloads::workload> source)
      : task_(t),
        mechanism_(std::move(mechanism)),
        path_(pool_path(t, "itm-" + mechanism_)),
        source_(std::move(source)),
        keys_(t.parameters),
        generators_(make_generators(t)) {}

  ~itm_contender() override {
    (void)stele::itm::close();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::string name() const override { return "itm " + mechanism_; }
  std::string media() const override { return task_.media; }
  durability_level durability() const override { return stele::itm::durability_in_force(); }

  result<> set_up() override {
    auto opened = stele::itm::open<itm::root>(path_, stele_options(task_, mechanism_));
    if (!opened) return std::unexpected(std::move(opened.error()));
    root_ = *opened;
    if (task_.workload == "sps") {
      itm::make_words(root_, keys_.size());
      for (std::uint64_t i = 0; i < keys_.size(); i += 256)
        itm::fill_words(root_, i, std::min(i + 256, keys_.size()), start_word, &keys_);
    } else {
      for (std::uint64_t i = 0; i < keys_.size(); ++i)
        if (const std::uint64_t key = keys_.scattered(i); keys_.present_at_start(key))
          itm::toggle(root_, key, keys_.word_at_start(key));
    }
    return {};
  }

  result<measurement> run(double seconds) override {
    const pool_counters before = stele::itm::counters();
    const bool sps = task_.workload == "sps";
    auto m = drive(generators_, seconds, task_.idle_share, [&](unsigned) {
      return draw_and_apply(*source_, 1, [this, sps](std::span<const operation> ops) -> result<> {
        apply(ops.front(), sps);
        return {};
      });
    });
    const pool_counters after = stele::itm::counters();
    if (m)
      m->events =
          event_counts{after.fences - before.fences, after.flushed_lines - before.flushed_lines,
                       after.streamed_bytes - before.streamed_bytes, after.aborts - before.aborts};
    return m;
  }

  footprint space() override { return {std::nullopt, live_bytes_of(task_)}; }

  result<> check() override {
    if (task_.workload != "sps") {
      if (itm::count_nodes(root_) != ~std::uint64_t{0}) return {};
      return std::unexpected(
          error{errc::corrupt, "the tree of atomic blocks is not a red-black tree any more"});
    }
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < keys_.size(); ++i)
      sum += itm::word_at(root_, i) - keys_.word_at_start(i);
    if (sum == 0) return {};
    return std::unexpected(
        error{errc::corrupt, "the words that atomic blocks swapped are not those that there were"});
  }

 private:
  void apply(const operation& op, bool sps) {
    if (op.what == operation::kind::read)
      workloads::do_not_optimize(sps ? itm::word_at(root_, op.a) : itm::find(root_, op.a));
    else if (sps)
      itm::swap_words(root_, op.a, op.b);
    else
      itm::toggle(root_, op.a, op.b);
  }

  const task task_;
  const std::string mechanism_;
  const std::string path_;
  const std::unique_ptr<workloads::workload> source_;  // draws operations; it has no pool
  const workloads::key_space keys_;
  std::vector<base::rng> generators_;
  itm::root* root_ = nullptr;
};

}  // namespace

contender_result make_itm(const task& t, const std::string& mechanism) {
  if (t.ops_per_tx != 1 || t.parameters.value_size != 8 ||
      (t.workload != "sps" && t.workload != "rbtree"))
    return std::unexpected(error{
        errc::unsupported,
        "atomic blocks are compared on sps and rbtree, one operation a block, values of 8 bytes"});
  auto source = workloads::make_workload(t.workload, t.parameters);
  if (!source) return std::unexpected(std::move(source.error()));
  return std::make_unique<itm_contender>(t, mechanism, std::move(*source));
}

}  // namespace stele::bench
