// The crash explorer: for every crash point of a run, every state that memory may be in. The real
// recovery recovers each state and the judge judges it.
//
// Crash points are: just before every fence, at every acknowledgement, at the end. They suffice,
// because what could be on media at an earlier instant could still be there at the next fence. A
// recovered pool must have the model's state after some prefix of the operations. The prefix
// contains every acknowledged operation and none that was not yet invoked. The return of a later
// sync or durable commit acknowledges an ordered commit. From some states the explorer records the
// recovery and the operations after it, and explores that tape too. There only the state that
// recovery found is allowed, until further operations come.
#pragma once

#include <explore/crash_model.h>
#include <explore/judge.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stele::explore {

struct settings {
  std::uint64_t bound = 4096;   // states for each crash point; more are sampled
  unsigned recovery_depth = 2;  // 1: crashes in the run only; n: also in n - 1 levels of recoveries
  std::uint64_t recovery_bound = 48;    // states for each crash point in a recovery
  unsigned recovery_samples = 1;        // recorded at each crash point, of each of two kinds
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  std::size_t max_violations = 8;       // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const struct findings&)> progress;  // called now and then
};

struct violation {
  std::string what;
  std::string line;  // replays it
};

struct findings {
  std::uint64_t states = 0;     // crash states built
  std::uint64_t distinct = 0;   // of these, states that differ from all before
  std::uint64_t recovered = 0;  // different images after recovery
  std::uint64_t epochs = 0, epochs_exhausted = 0;
  // Crashes that recovery may refuse and did: expired logs, skipped lines.
  std::uint64_t refused = 0;
  // Crashes of the run itself after which recovery was allowed to go back to a checkpoint.
  std::uint64_t fell_back = 0;
  // Behind a cache, over the distinct crashes of runs. `inconsistent`: skipped lines that were not
  // on media as stored last. `detected`: lines that recovery found not to match their checksums
  // (the logs had all stores of the other lines). `uncorrectable`: the detected lines that it could
  // not restore.
  std::uint64_t inconsistent = 0, detected = 0, uncorrectable = 0;
  std::uint64_t recoveries = 0;                // recoveries that were recorded and explored too
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

// The same in a child process, which may die.
[[nodiscard]] result<findings> explore_isolated(const plan& p, const settings& s);
// Any run in a child process. If the child dies, that is a violation that `line` replays.
[[nodiscard]] result<findings> run_isolated(const std::function<result<findings>()>& run,
                                            const std::string& line);

}  // namespace stele::explore
