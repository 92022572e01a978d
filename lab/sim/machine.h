// Runs a tape on a machine and returns the measured quantities.
#pragma once

#include <sim/config.h>
#include <sim/result.h>
#include <sim/time.h>
#include <stele/error.h>

#include <functional>

namespace stele::sim {

struct run_options {
  std::string tape;
  std::uint64_t seed = 1;
  std::uint64_t warm_up_transactions = 0;  // nothing is counted before these
  picoseconds timeline_interval = 0;       // length of an epoch; 0: no time line
  // The commands of each memory are written to this path with .nonvolatile_memory or
  // .volatile_memory after it; empty: none.
  std::string commands;
  // the share of the tape's bytes that have been consumed
  std::function<void(double share)> progress;
  std::function<bool()> cancelled;  // true ends the run with errc::cancelled
};

// Errors: those of the tape; invalid_argument when the machine cannot run it; io when a file of
// commands cannot be written; cancelled.
[[nodiscard]] result<run_result> run_machine(const machine_config& machine,
                                             const run_options& options);

}  // namespace stele::sim
