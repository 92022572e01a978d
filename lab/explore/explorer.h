// The crash explorer: for every crash point of a run, every state that memory may be in, judged by
// real recovery.
//
// Crash points: just before every fence, at every acknowledgement, at the end; whatever could be on
// media at an earlier instant could still be there at the next fence. A recovered pool must be the
// model's state after some prefix of the operations that contains every acknowledged one and none
// that was not yet invoked; what acknowledges an ordered commit is the return of a later sync or
// durable commit. From some of the states the explorer goes on: it records their recovery and what
// is done next, and explores that tape in turn; there the state that recovery found is the only one
// allowed until further operations come.
#pragma once

#include <explore/crash_model.h>
#include <explore/judge.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stele::explore {

struct settings {
  std::uint64_t bound = 4096;   // states a crash point; more are sampled
  unsigned recovery_depth = 2;  // 1: crashes in the run only; n: in n - 1 recoveries on top of it
  std::uint64_t recovery_bound = 48;    // states a crash point of a recovery
  unsigned recovery_samples = 1;        // recoveries recorded a crash point, of each of two kinds
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  std::size_t max_violations = 8;       // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const struct findings&)> progress;  // now and then
};

struct violation {
  std::string what;
  std::string line;  // replays it
};

struct findings {
  std::uint64_t states = 0;     // crash states built
  std::uint64_t distinct = 0;   // of these, different from all before
  std::uint64_t recovered = 0;  // different images after recovery
  std::uint64_t epochs = 0, epochs_exhausted = 0;
  std::uint64_t refused = 0;  // crashes that recovery said no to, where it may: logs that have
                              // expired, lines that were skipped
  std::uint64_t fell_back =
      0;  // crashes of the run itself after which it went back to a checkpoint, as it may
  // Behind a cache, over the distinct crashes of runs: lines that had been skipped and were not on
  // media as stored last; those that recovery found to be not what their checksums speak for (the
  // others' logs had all of it); of these, those that it could not restore.
  std::uint64_t inconsistent = 0, detected = 0, uncorrectable = 0;
  std::uint64_t recoveries = 0;                // recorded and explored in turn
  std::uint64_t points = 0, points_total = 0;  // of the run itself, for progress
  std::vector<violation> violations;
  double seconds = 0;
  bool cancelled = false;

  double states_per_s() const noexcept {
    return seconds > 0 ? static_cast<double>(states) / seconds : 0;
  }
};

// Errors: what making the subject returns. A failure of the run itself, or a crash of the program
// while it judges, is a violation.
[[nodiscard]] result<findings> explore(const plan& p, const settings& s);

// The same in a process of its own, which may die.
[[nodiscard]] result<findings> explore_isolated(const plan& p, const settings& s);
// Any run in a process of its own; should that die, it is a violation that `line` replays.
[[nodiscard]] result<findings> run_isolated(const std::function<result<findings>()>& run,
                                            const std::string& line);

}  // namespace stele::explore
