// Runs a trace of requests on a memory of a machine, without cores and caches.
//
// A request is submitted in its cycle, or in the first cycle after it in which the queues have room
// for it; at most one in a cycle. A latency counts from then. With a limit of reads in flight, a
// read is not submitted while so many are unfinished: a processor with so many outstanding misses.
#pragma once

#include <sim/config.h>
#include <sim/result.h>
#include <stele/error.h>

#include <functional>

namespace stele::sim {

struct memory_run_options {
  std::string trace, format;                  // request_trace_formats()
  std::string memory = "nonvolatile_memory";  // or volatile_memory
  std::string commands;                       // a file for the commands; empty: none
  unsigned reads_in_flight = 0;               // unfinished reads at most; 0: no limit
  picoseconds timeline_interval = 0;          // length of an epoch; 0: no time line
  // the share of the trace's bytes that have been read
  std::function<void(double share)> progress;
  std::function<bool()> cancelled;  // true ends the run with errc::cancelled
};

// The cycle of a memory without a clock.
inline constexpr picoseconds cycle_without_clock = 1000;

// Errors: those of the trace; invalid_argument when there is no such memory or it contradicts
// itself; io when the file of commands cannot be written; cancelled.
[[nodiscard]] result<run_result> run_memory(const machine_config& machine,
                                            const memory_run_options& options);

}  // namespace stele::sim
