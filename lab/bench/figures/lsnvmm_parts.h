// The figures of the log-structured evaluation that are not sweeps of throughput, and functions
// that all its figures share.
#pragma once

#include <bench/figures/heap_workload.h>
#include <bench/figures/sweep.h>
#include <published/log_structured/home_map.h>

#include <array>

namespace stele::bench::lsnvmm {

inline constexpr const char* mechanism = "log_structured";
inline constexpr const char* medium = "delayed:500:1";  // under the first charging rule
inline constexpr std::size_t chunk_bytes = 32768;
inline constexpr std::size_t value_bytes = 128;

// A workload with its key choice, under one name. Ins inserts uniform keys into a growing
// structure; Upd deletes its key or inserts it, keys by Zipf.
struct pattern {
  const char *name, *workload;
  workloads::key_choice choice;
};
inline constexpr std::array<pattern, 9> patterns = {
    {{"sps", "sps", workloads::key_choice::uniform},
     {"hash Ins", "hash", workloads::key_choice::fresh},
     {"hash Upd", "hash", workloads::key_choice::zipf},
     {"rbtree Ins", "rbtree", workloads::key_choice::fresh},
     {"rbtree Upd", "rbtree", workloads::key_choice::zipf},
     {"bptree Ins", "bptree", workloads::key_choice::fresh},
     {"bptree Upd", "bptree", workloads::key_choice::zipf},
     {"kv Ins", "kv", workloads::key_choice::fresh},
     {"kv Upd", "kv", workloads::key_choice::zipf}}};

// The logging systems beside log_structured in figures 7 and 8: a mechanism, and its name in the
// paper.
struct logging_system {
  const char *mechanism, *text;
};
inline constexpr logging_system logging_systems[] = {{"redo", "Mnm"},
                                                     {"undo", "MU"},
                                                     {"redo-published", "Mnm as published"},
                                                     {"undo-published", "MU as published"}};

// Under the options' charging rule.
std::string medium_of(const sweep_options& o);
// The setting of section 5.1: 128-byte values, one operation per transaction, one thread, 500 ns
// and 1 GB/s.
task task_on(const sweep_options& o, const pattern& p, std::size_t keys);
void set_pattern(task& t, const pattern& p);

// log_structured with the map after each optimisation of section 3.2: "base", "2L", "2L-GU",
// "2L-GU-C", "all"; without the word cache, which is none of them. Pools have room for three times
// the content and for all that is written, so that cleaning does not begin to move entries.
std::vector<entry> stages(const sweep_options& o);
entry all_optimisations(const sweep_options& o, std::string name, std::string label);
entry in_place(const sweep_options& o, const logging_system& s);

// Events per transaction, from the sums over all runs.
double per_transaction(const row& r, std::uint64_t event_counts::* count);
// Bytes written to memory per transaction: 64 bytes for each flushed line, and all streamed bytes.
double traffic_of(const row& r);
// Bytes stored per transaction: the bytes of each store, and all streamed bytes.
double stored_of(const row& r);
double hit_percent_of(const row& r);

// An open pool with the task's workload, filled.
class filled_pool {
 public:
  [[nodiscard]] static result<std::unique_ptr<filled_pool>> make(const task& t,
                                                                 const pool_options& options);
  filled_pool(const filled_pool&) = delete;
  filled_pool& operator=(const filled_pool&) = delete;
  ~filled_pool();

  workloads::workload& on() noexcept { return *workload_; }
  [[nodiscard]] result<> apply(std::uint64_t operations);  // one per transaction
  pool_counters counters() { return detail::counters_of(workload_->core()); }
  std::uint64_t live_bytes();  // in the log, without heads of entries
  // with heads: the minimum for compaction. Not while a transaction or cleaning runs
  std::uint64_t entries_bytes();
  const storage::home_map& map();
  std::vector<std::uint64_t> chunk_writes();  // how often each chunk has been written, ascending

 private:
  filled_pool(const task& t, std::unique_ptr<workloads::workload> w);
  std::string path_;
  std::unique_ptr<workloads::workload> workload_;
  base::rng random_;
  bool attached_ = false;
};

// The size of a log-structured pool in which the task's structure fills the given share of the
// chunks.
[[nodiscard]] result<std::size_t> pool_for_share(task t, double share, std::uint64_t operations);

// Figures 9 to 13, and wear. Errors: those of pools; cancelled.
[[nodiscard]] result<> measure_fragmentation(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_fast_cleaning(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_utilisation(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_wear(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_recovery(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_dram(const sweep_options& o, chart& into);

// Used by both the figures and the project's targets.
struct held_space {
  std::uint64_t live_bytes = 0, held_bytes = 0;
  double percent() const noexcept {
    return 100 * (1 - static_cast<double>(live_bytes) / static_cast<double>(held_bytes));
  }
};
// The smallest pool, within half a percent of the live bytes, in which the workload runs to its
// end.
[[nodiscard]] result<held_space> smallest_pool(const heap_workload& w, const sweep_options& o);
// Throughput at these utilisations (percent), beside a pool that needs no cleaning.
[[nodiscard]] result<> measure_utilisation_at(const sweep_options& o, std::size_t value_size,
                                              std::span<const unsigned> percents, chart& into);

struct recovered {
  double seconds = 0;
  std::uint64_t log_bytes = 0;
};
// The time to open a killed pool, in each of `runs` runs for each number of threads:
// [threads][run].
[[nodiscard]] result<std::vector<std::vector<recovered>>> recover_killed(
    const sweep_options& o, std::size_t value_size, std::span<const unsigned> threads);
struct map_footprint {
  std::uint64_t map_bytes = 0, content_bytes = 0,
                live_bytes = 0;  // content: keys and values; live: all live data in the log
  std::uint64_t nodes = 0, lists_bytes = 0;  // part of map_bytes: all except the node caches
  std::uint64_t elements = 0;
};
[[nodiscard]] result<map_footprint> map_of_kv(const sweep_options& o, std::size_t value_size);

}  // namespace stele::bench::lsnvmm
