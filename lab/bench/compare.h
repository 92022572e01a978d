// The comparison: contenders side by side in one run, so that disturbances of the machine affect
// all of them alike.
//
// All contenders are set up first. Then every run gives each contender its seconds in turn. A row
// holds the median, minimum and maximum throughput of its runs, and latencies and event counts over
// all of them. The rows "volatile" and "one-fence log by hand" are not systems but limits: the
// structure without durability, and with the least possible cost of durability.
#pragma once

#include <bench/contender.h>
#include <bench/spread.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

struct comparison {
  task what;
  std::vector<std::string> mechanisms;  // of Stele
  std::vector<concurrency> policies;    // a row of Stele for each; empty: the task's policy
  // Beside each row of Stele, one that runs so many operations at a time by the structure's calls
  // for many items, which it must have (get_many, find_many); 0: none.
  std::size_t batch = 0;
  // A rival without the structure of word_hash runs hash instead. With a host: its rivals, host.h.
  std::vector<std::string> rivals;
  bool limits = true;  // also run the limit models (a host's own one) and measure the hardware
  unsigned runs = 5;
  double seconds = 1;  // for each contender in each run
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> cancelled = [] {
    return false;
  };  // called between runs; the rows then hold the completed runs
};

struct row {
  std::string system, workload, media;
  durability_level survives = durability_level::none;
  unsigned threads = 1;
  spread tx_per_s;
  std::optional<double> fences_per_tx, lines_per_tx, streamed_bytes_per_tx, aborts_per_tx;
  std::uint64_t transactions = 0;      // in all runs
  std::optional<event_counts> events;  // likewise
  double p50_ns = 0, p99_ns = 0, p999_ns = 0;
  // Until a client is answered: those above, unless the task measures it apart.
  double answered_p50_ns = 0, answered_p99_ns = 0;
  std::optional<std::uint64_t> space_bytes;
  std::uint64_t live_bytes = 0;
  std::uint64_t log_bytes = 0;  // part of space_bytes
};

// Nanoseconds for operations of the hardware, of the memory, or on media "file" of the device; and
// for the loop that drives the contenders.
struct limits {
  std::optional<spread> streamed_line_fence_ns, flushed_line_fence_ns, empty_fence_ns,
      synced_block_ns;
  std::optional<spread> driver_ns;  // of every row's transactions; see measure_driver
};

struct report {
  limits hardware;
  std::vector<row> rows;
  std::vector<std::string> notes;  // what does not fit the task; interruptions
};

// Errors: those of the contenders that were requested by name; cancelled, when no run was
// completed.
[[nodiscard]] result<report> compare(const comparison& c);

// The same for given contenders, in their order. Uses the runs, seconds, limits and callbacks of
// `c`, and `what` where rows and limits describe the task.
[[nodiscard]] result<report> compare(std::vector<std::unique_ptr<contender>> contenders,
                                     const comparison& c);

// The row of a system; null when there is none.
const row* find_row(const report& r, std::string_view system);

// An aligned table. Ratios are to the row of system `baseline`, or, if there is none of that name,
// to the first system that is not a limit. A narrow one has the columns that fit a terminal of 80.
enum class table_width : std::uint8_t { narrow, wide };
std::string table_of(const report& r, const std::string& baseline, table_width width);
nlohmann::json json_of(const report& r);

}  // namespace stele::bench
