// Crashes behind a memory controller that orders writes by persist barriers: what is in the cells
// is exactly the line writes that were persistent, each with the line's content when it was
// flushed. Judged by real recovery.
//
// A run is recorded once and its writes are played through the controller several times; a crash
// comes after every write that becomes persistent. From pass to pass the seed changes the machine
// (banks, how addresses fall on them, how long writes of logs and of data take, what queues hold),
// and with it the order that a scheduler makes of the same writes. Threads' operations overlap as
// in sim/feed/write_trace.h. Nothing waits in a fence: an operation counts as acknowledged when all
// of its own writes are persistent, which is when a fence that waits would have returned. One of
// some recoveries is recorded with what follows it, and played in turn.
//
// A line is written whole or not at all, and nothing reaches memory that was not flushed.
//
// Logs may have a shorter retention than data (section "Retention" of docs/protocol/dp2.md). Where
// they have expired, recovery may refuse the pool; what it does recover must be as right as ever.
#pragma once

#include <explore/explorer.h>
#include <explore/replay.h>

#include <string>

namespace stele::explore {

struct controller_settings {
  std::string scheduler = "rules";
  std::uint64_t crashes = 100'000;
  std::uint64_t passes_a_run = 8;       // then another run is recorded, of the next seed
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  bool expired =
      false;  // logs have expired when the power returns: some of their lines hold anything
  std::size_t max_violations = 8;  // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const findings&)> progress;  // now and then
};

// `states` are crashes, `distinct` those that differ from all before. Errors: invalid_argument (no
// such scheduler); what making the subject returns.
[[nodiscard]] result<findings> crash_behind_controller(const plan& p, const controller_settings& s);
// The same in a process of its own, which may die.
[[nodiscard]] result<findings> crash_behind_controller_isolated(const plan& p,
                                                                const controller_settings& s);

struct controller_crash {
  plan run_plan;
  std::string scheduler;
  bool expired = false;
  std::uint64_t seed = 0;       // of the machine, and of what expired lines hold
  std::uint64_t persisted = 0;  // writes; the crash comes after them
  // A crash in the recovery from that one: of another machine, after so many writes; operations:
  // done after the recovery.
  bool in_recovery = false;
  std::uint64_t recovery_seed = 0, recovery_persisted = 0, operations = 0;
};

//   controller base/sps ops=100 ... mutant=none scheduler=rules at=17:812 +2 at=90125:33
//   controller base/sps ops=100 ... mutant=none scheduler=rules expired at=17:812
std::string format_line(const controller_crash& c);
bool names_controller_crash(std::string_view line) noexcept;
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<controller_crash> parse_controller_line(const std::string& line);
[[nodiscard]] result<replay_result> replay(const controller_crash& c);

}  // namespace stele::explore
