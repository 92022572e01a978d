// The figures of the log-structured evaluation that are no sweeps of throughput, and what all of
// them share.
#pragma once

#include <bench/figures/heap_workload.h>
#include <bench/figures/sweep.h>
#include <pool/home_map.h>

#include <array>

namespace stele::bench::lsnvmm {

inline constexpr const char* mechanism = "log_structured";
inline constexpr const char* medium = "delayed:500:1";
inline constexpr std::size_t chunk_bytes = 32768;
inline constexpr std::size_t value_bytes = 128;

// A workload and how its keys are chosen, by one name.
struct pattern {
  const char *name, *workload;
  workloads::key_choice choice;
};
inline constexpr std::array<pattern, 9> patterns = {
    {{"sps", "sps", workloads::key_choice::uniform},
     {"hash uniform", "hash", workloads::key_choice::uniform},
     {"hash zipf", "hash", workloads::key_choice::zipf},
     {"rbtree uniform", "rbtree", workloads::key_choice::uniform},
     {"rbtree zipf", "rbtree", workloads::key_choice::zipf},
     {"bptree uniform", "bptree", workloads::key_choice::uniform},
     {"bptree zipf", "bptree", workloads::key_choice::zipf},
     {"kv uniform", "kv", workloads::key_choice::uniform},
     {"kv zipf", "kv", workloads::key_choice::zipf}}};

// The setting of section 5.1: 128-byte values, one operation a transaction, one thread, 500 ns and
// 1 GB/s.
task task_on(const sweep_options& o, const pattern& p, std::size_t keys);
void set_pattern(task& t, const pattern& p);

// log_structured with its map as it is after each optimisation of section 3.2: "base", "2L",
// "2L-GU", "2L-GU-C", "all". Pools have three times the room of the content, and room for all that
// is written, so that cleaning does not begin to move anything.
std::vector<entry> stages(const sweep_options& o);
entry all_optimisations(const sweep_options& o, std::string name, std::string label);
entry in_place(const std::string& mechanism, const std::string& text);  // redo, undo

// Events a transaction, by the sums over all runs.
double per_transaction(const row& r, std::uint64_t event_counts::* count);
// What is written back to memory: 64 bytes for each line flushed or streamed.
double traffic_of(const row& r);
// What of it was stored: the bytes of each store, streamed ones among them.
double stored_of(const row& r);
double hit_percent_of(const row& r);

// An open pool with the task's workload on it, filled.
class filled_pool {
 public:
  [[nodiscard]] static result<std::unique_ptr<filled_pool>> make(const task& t,
                                                                 const pool_options& options);
  filled_pool(const filled_pool&) = delete;
  filled_pool& operator=(const filled_pool&) = delete;
  ~filled_pool();

  workloads::workload& on() noexcept { return *workload_; }
  [[nodiscard]] result<> apply(std::uint64_t operations);  // one a transaction
  pool_counters counters() { return detail::counters_of(workload_->core()); }
  std::uint64_t live_bytes();     // in the log, without heads of entries
  std::uint64_t entries_bytes();  // with them: what compaction cannot go below. While no
                                  // transaction and no cleaning runs
  const storage::home_map& map();

 private:
  filled_pool(const task& t, std::unique_ptr<workloads::workload> w);
  std::string path_;
  std::unique_ptr<workloads::workload> workload_;
  base::rng random_;
  bool attached_ = false;
};

// A log-structured pool that holds what the task's structure takes in chunks `1 / share` times.
[[nodiscard]] result<std::size_t> pool_for_share(task t, double share, std::uint64_t operations);

// Figures 9 to 13. Errors: those of pools; cancelled.
[[nodiscard]] result<> measure_fragmentation(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_fast_cleaning(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_utilisation(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_recovery(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_dram(const sweep_options& o, chart& into);

// What the figures and the project's marks both ask for.
struct held_space {
  std::uint64_t live_bytes = 0, held_bytes = 0;
  double percent() const noexcept {
    return 100 * (1 - static_cast<double>(live_bytes) / static_cast<double>(held_bytes));
  }
};
// The smallest pool, within half a percent of the live bytes, that the workload runs to its end in.
[[nodiscard]] result<held_space> smallest_pool(const heap_workload& w, const sweep_options& o);
// Throughput at these utilisations (percent), beside a pool that needs no cleaning.
[[nodiscard]] result<> measure_utilisation_at(const sweep_options& o, std::size_t value_size,
                                              std::span<const unsigned> percents, chart& into);

struct recovered {
  double seconds = 0;
  std::uint64_t log_bytes = 0;
};
// What opening a killed pool took, in each of `runs` runs for each number of threads:
// [threads][run].
[[nodiscard]] result<std::vector<std::vector<recovered>>> recover_killed(
    const sweep_options& o, std::size_t value_size, std::span<const unsigned> threads);
struct map_footprint {
  std::uint64_t map_bytes = 0, content_bytes = 0,
                live_bytes = 0;  // content: keys and values; live: all that the log holds
  std::uint64_t nodes = 0, lists_bytes = 0;  // of map_bytes, all but the node caches
  std::uint64_t elements = 0;
};
[[nodiscard]] result<map_footprint> map_of_kv(const sweep_options& o, std::size_t value_size);

}  // namespace stele::bench::lsnvmm
