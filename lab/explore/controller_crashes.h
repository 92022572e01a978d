// Crashes behind a memory controller that orders writes by persist barriers. The memory cells hold
// exactly the line writes that were persistent, each with the line's content at its flush. The real
// recovery recovers each state and the judge judges it.
//
// A run is recorded once and its writes are played through the controller several times (passes). A
// crash comes after every write that becomes persistent. The seed changes from pass to pass, and
// with it the machine: banks, address mapping, write latencies of logs and of data, queue sizes. So
// a scheduler orders the same writes differently. Operations of different threads overlap as in
// sim/feed/write_trace.h. No fence waits: an operation counts as acknowledged when all of its own
// writes are persistent, which is when a waiting fence would have returned. Some recoveries are
// recorded with the operations after them, and played too.
//
// A line is written whole or not at all. Only flushed lines reach memory.
//
// Logs may have a shorter retention than data (section "Retention" of docs/protocol/dp2.md). Where
// logs have expired, recovery may refuse the pool; a state that it does recover must be right.
#pragma once

#include <explore/explorer.h>
#include <explore/replay.h>

#include <string>

namespace stele::explore {

struct controller_settings {
  std::string scheduler = "rules";
  std::uint64_t crashes = 100'000;
  std::uint64_t passes_a_run = 8;       // then another run with the next seed is recorded
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  // Logs have expired when power returns: some of their lines hold random bits.
  bool expired = false;
  std::size_t max_violations = 8;  // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const findings&)> progress;  // called now and then
};

// `states` counts crashes; `distinct` counts those that differ from all before. Errors:
// invalid_argument for an unknown scheduler; what making the subject returns.
[[nodiscard]] result<findings> crash_behind_controller(const plan& p, const controller_settings& s);
// The same in a child process, which may die.
[[nodiscard]] result<findings> crash_behind_controller_isolated(const plan& p,
                                                                const controller_settings& s);

struct controller_crash {
  static constexpr std::string_view engine = "controller";
  plan run_plan;
  std::string scheduler = "rules";
  bool expired = false;
  // The seed is that of the machine, and of the content of expired lines; the number is how many
  // writes are persistent. The second is in the recovery from the first, on another machine.
  std::vector<crash_moment> moments = {};
  std::size_t recovery_operations = 2;  // after that recovery
};
line_fields fields_of(controller_crash& c);
[[nodiscard]] result<replay_result> replay(const controller_crash& c);

}  // namespace stele::explore
