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

  // A file for the state of the run; empty: none. It is written when simulated time passes
  // checkpoint_at, or each multiple of checkpoint_every, and when the run is cancelled. A failure
  // leaves the file as it was, and the run goes on, except at the last of these.
  std::string checkpoint{};
  picoseconds checkpoint_at = never, checkpoint_every = 0;  // never, 0: not at such a time
  // Called for each checkpoint, with the time of it or the error.
  std::function<void(const result<picoseconds>& written)> checkpointed{};
  // The checkpoint that the run goes on from; empty: it begins. Machine, tape and all options above
  // are those of the first run. The result is that of a run that was never interrupted.
  std::string resume{};
};

// Errors: those of the tape; invalid_argument when the machine cannot run it; io when a file of
// commands, or the checkpoint of a run that is cancelled, cannot be written; cancelled; those of
// read_checkpoint() and check_same_run(), corrupt when a checkpoint contradicts itself, unsupported
// when a plug-in has no visit_state().
[[nodiscard]] result<run_result> run_machine(const machine_config& machine,
                                             const run_options& options);

}  // namespace stele::sim
