// libpmemobj (PMDK) on the workloads, in its fastest form: with its transactions, and with its
// actions, which publish new words and allocations at once but leave it to the program to collect
// them.
//
// Settings: it is told that the mapping is persistent memory (PMEM_IS_PMEM_FORCE), so it flushes
// lines instead of calling msync; pages are touched at creation; no unsafe-shutdown record; nodes
// come from allocation classes of their exact size without headers. Structures link by 8-byte
// offsets instead of its 16-byte pointers, and snapshot only the bytes that change, each range
// once. Fresh nodes are not snapshotted. Transactions use return codes, not setjmp.
//
// It has no isolation. With more than one thread sps runs without any (its swaps may interleave),
// the hash map holds volatile spin locks over stripes of buckets during the transaction, and the
// ordered map one lock; the name in the report says so. Its `store` is the hash map with 8-byte
// keys. It does not count fences and lines. On media "file" it uses msync; a filled
// pool is synced once.
#include <bench/drive.h>
#include <bench/rivals/libpmemobj_structures.h>
#include <bench/stripes.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {
std::atomic<bool> fills{false};
}

// The library's calls of msync, and all others of this program. While a pool is filled they do
// nothing, because libpmemobj would make a dozen for each node.
extern "C" int msync(void* at, std::size_t size, int flags) {
  if (fills.load(std::memory_order_relaxed)) return 0;
  return static_cast<int>(::syscall(SYS_msync, at, size, flags));
}

namespace stele::bench {
namespace {

using namespace pmdk;

template <class Changes>
class pmemobj_contender final : public contender {
 public:
  pmemobj_contender(const task& t, std::unique_ptr<workloads::workload> w)
      : task_(t), draws_(std::move(w)), generators_(make_generators(t)), locks_(lock_count(t)) {}

  std::string name() const override {
    const std::string name = Changes::name;
    if (task_.threads == 1) return name;
    if (task_.workload == "sps") return name + ", no isolation";
    return name + (is_hashed(task_) ? ", striped locks" : ", one lock");
  }
  std::string media() const override { return task_.media; }
  durability_level durability() const override { return durability_of(task_, path()); }

  result<> set_up() override {
    setenv("PMEM_IS_PMEM_FORCE", task_.media == "file" ? "0" : "1", 1);
    auto made = pmem_pool::create(path(), pool_size());
    if (!made) return std::unexpected(std::move(made.error()));
    pool_ = std::move(*made);
    if (task_.workload == "sps")
      structure_ = std::make_unique<array_of_elements<Changes>>(*pool_, task_);
    else if (is_hashed(task_))
      structure_ = std::make_unique<chained_map<Changes>>(*pool_, task_);
    else
      structure_ = std::make_unique<red_black_map<Changes>>(*pool_, task_);
    fills = true;
    auto filled = structure_->fill(task_.parameters);
    fills = false;
    if (filled && ::msync(pool_->handle(), pool_size() / 4096 * 4096, MS_SYNC) != 0)
      return std::unexpected(error{errc::io, "syncing the filled pool failed"});
    return filled;
  }

  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned) {
      return draw_and_apply(*draws_, task_.ops_per_tx,
                            [this](std::span<const operation> ops) { return apply(ops); });
    });
  }

  footprint space() override { return {structure_->space_bytes(), live_bytes_of(task_)}; }

  result<> check() override {
    const bool isolated = task_.threads == 1 || task_.workload != "sps";
    if (!isolated || structure_->is_valid()) return {};
    return std::unexpected(
        error{errc::corrupt, "the structure in its pool is not what the operations leave"});
  }

 private:
  static bool is_hashed(const task& t) { return t.workload == "hash" || t.workload == "store"; }
  static std::size_t lock_count(const task& t) {
    if (t.threads == 1 || t.workload == "sps") return 0;
    return is_hashed(t) ? std::min<std::size_t>(4096, std::bit_ceil(t.parameters.keys)) : 1;
  }
  std::string path() const { return pool_path(task_, Changes::name); }
  std::size_t pool_size() const {
    const auto& p = task_.parameters;
    const std::size_t element =
        task_.workload == "sps" ? p.value_size : p.value_size + sizeof(tree_node) + 16;
    return p.keys * element * 5 / 4 + (std::size_t{64} << 20);
  }

  result<> apply(std::span<const operation> ops) {
    const stripes::guard locked(locks_, ops);
    return structure_->apply(ops);
  }

  const task task_;
  const std::unique_ptr<workloads::workload> draws_;  // only draws operations; never attached
  std::vector<base::rng> generators_;
  stripes locks_;
  std::unique_ptr<pmem_pool> pool_;
  std::unique_ptr<structure> structure_;
};

template <class Changes>
contender_result make(const task& t) {
  const auto unsupported = [](std::string why) {
    return std::unexpected(error{errc::unsupported, "libpmemobj: " + std::move(why)});
  };
  if (t.workload != "sps" && t.workload != "hash" && t.workload != "rbtree" &&
      t.workload != "store")
    return unsupported(fmt::format(
        "no structure for the workload '{}'; there are sps, hash, rbtree and store", t.workload));
  if (t.media != "adr" && t.media != "file" && t.media != "eadr" && t.media != "process")
    return unsupported(fmt::format("it cannot run on media '{}'", t.media));
  const char* no_flush = std::getenv("PMEM_NO_FLUSH");
  const bool flushes = no_flush == nullptr || std::string_view(no_flush) != "1";
  if ((t.media == "eadr" || t.media == "process") == flushes)
    return unsupported(fmt::format("media '{}' needs the environment to have PMEM_NO_FLUSH={}",
                                   t.media, flushes ? 1 : 0));
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  return std::make_unique<pmemobj_contender<Changes>>(t, std::move(*w));
}

}  // namespace

contender_result make_libpmemobj(const task& t) {
  return make<transaction_changes>(t);
}
contender_result make_libpmemobj_actions(const task& t) {
  return make<action_changes>(t);
}

}  // namespace stele::bench
