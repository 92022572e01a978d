// A contender: one system under comparison. A comparison only asks it to run a workload's
// transactions for some time.
//
// Every contender draws its operations from the workload's generator with the same seeds, writes
// the same values, and gives each transaction the durability that it states. set_up fills the
// structure and may be slow. run may be called many times and continues where the last run stopped.
// The destructor removes what set_up created. A comparison calls a contender from one thread; run
// starts the threads that it needs.
#pragma once

#include <base/histogram.h>
#include <base/rng.h>
#include <stele/adaptive_options.h>
#include <stele/archapt_options.h>
#include <stele/blurred_options.h>
#include <stele/log_structured_options.h>
#include <stele/pool.h>
#include <workloads/workload.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// The task of every contender in one comparison.
struct task {
  std::string workload = "sps";
  std::string host;  // "": structures of Stele's; else a host of host.h, and its transactions
  workloads::parameters parameters;
  std::size_t ops_per_tx = 1;
  // Items of each call of Stele's row; 0: transactions of ops_per_tx operations. The row counts
  // items.
  std::size_t batch = 0;
  unsigned threads = 1;
  std::uint64_t seed = 1;     // of the operations
  std::string media = "adr";  // as in pool_options
  concurrency policy = concurrency::stm;
  std::string dir = ".";                       // the folder for pools
  std::size_t log_size_bytes = 0;              // of each log of Stele; 0: by pool size
  std::size_t log_count = 0;                   // the number of these logs; 0: by pool size
  adaptive_options adaptive = {};              // options of Stele's mechanism `adaptive`
  blurred_options blurred = {};                // of xil, blurred and adaptive
  log_structured_options log_structured = {};  // likewise
  archapt_options archapt = {};                // likewise
  // of Stele's transactions; a run with ordered commits ends with a sync, whose time is counted
  durability commits = durability::durable;
  // Also measures the time until a client is answered, which is when its commit is durable.
  bool until_answered = false;
  deferral defer_ordered = deferral::automatic;
  std::size_t pool_size_bytes = 0;  // of Stele's pools; 0: by workload
  // Of a size by workload: for what the operations add.
  std::size_t spare_bytes = std::size_t{64} << 20;
  std::string label;      // distinguishes contenders of one mechanism
  std::string note;       // follows the mechanism in the name of Stele's row
  double idle_share = 0;  // share of each thread's time spent asleep; below 1
};

// Sums over a run; rivals that do not count have none.
struct event_counts {
  std::uint64_t fences = 0, lines = 0, streamed_bytes = 0, aborts = 0;
  std::uint64_t stored_bytes = 0, map_hits = 0, map_misses = 0;  // as in pool_counters
  std::uint64_t cleaned_chunks = 0, fast_cleaned_chunks = 0, moved_bytes = 0;  // likewise
  std::uint64_t skipped_lines = 0, checksum_lines = 0, undo_logged_lines = 0,
                truncations = 0;  // likewise
};

struct measurement {
  std::uint64_t transactions = 0;
  double seconds = 0;
  base::histogram latency_ns;   // of a sample of the transactions
  base::histogram answered_ns;  // likewise, until a client is answered; if the task asks for it
  std::optional<event_counts> events;
};

// The space that the structure takes, and the size of its content.
struct footprint {
  std::optional<std::uint64_t>
      space_bytes;               // blocks with headers, logs, second copies; no free space
  std::uint64_t live_bytes = 0;  // keys and values of the initial content
  std::uint64_t log_bytes = 0;   // part of space_bytes; includes a pool's header and tables
};

class contender {
 public:
  virtual ~contender() = default;
  virtual std::string name() const = 0;
  // Where the data is stored, and the failure that an acknowledged transaction survives: "power",
  // "process", "none", ...
  virtual std::string media() const = 0;
  virtual durability_level durability() const = 0;
  [[nodiscard]] virtual result<> set_up() = 0;
  [[nodiscard]] virtual result<measurement> run(double seconds) = 0;
  virtual footprint space() = 0;
  // After runs: returns an error (corrupt) when the structure is not what its operations must have
  // left, as far as the system can tell.
  [[nodiscard]] virtual result<> check() { return {}; }
};

using contender_result = result<std::unique_ptr<contender>>;

// Create the contenders. Errors: invalid_argument, unsupported (the task does not fit this system),
// not_found.
[[nodiscard]] contender_result make_stele(const task& t, const std::string& mechanism);
// The same with a workload of the caller's.
[[nodiscard]] contender_result make_stele_with(const task& t, const std::string& mechanism,
                                               std::unique_ptr<workloads::workload> w);
[[nodiscard]] contender_result make_volatile(const task& t);
[[nodiscard]] contender_result make_one_fence_log(const task& t);
[[nodiscard]] contender_result make_rival(const task& t, std::string_view name);
std::vector<std::string> rival_names();
// The rivals that run a workload: not every rival has every structure.
std::vector<std::string> rivals_for(std::string_view workload);

// How make_stele creates and opens its pools: with a host by the policy `external`, because the
// host's adapter isolates transactions, and growing where the mechanism can. pool_size_of is the
// size of pools whose task states none.
std::size_t pool_size_of(const task& t);
pool_options stele_options(const task& t, const std::string& mechanism);

// Keys and values of the workload's initial content, in bytes.
std::uint64_t live_bytes_of(const task& t);

// The failure that an acknowledged transaction survives on the task's media, by the rule for pools:
// flushes into a file whose memory is not persistent survive only the process.
durability_level durability_of(const task& t, const std::string& file);

// A path in the task's folder for a contender's pool, not used by another process.
std::string pool_path(const task& t, std::string_view name);

}  // namespace stele::bench
