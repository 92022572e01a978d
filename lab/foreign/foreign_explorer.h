// Judges the crash states of a recording: at each crash point all of them, or a seeded sample where
// there are more than the bound. A state that was judged before is not judged again.
#pragma once

#include <foreign/checker.h>
#include <foreign/crash_walk.h>
#include <foreign/state_line.h>

#include <map>

namespace stele::foreign {

struct findings {
  std::uint64_t points = 0, points_total = 0;
  std::uint64_t sampled_points = 0;  // with more states than the bound
  std::uint64_t states = 0;          // judged; all different
  std::uint64_t repeated = 0;        // built, but judged before
  std::uint64_t violating = 0;
  std::uint64_t about = 0;  // of the violating: whose checker says what is sought
  std::map<std::string, std::uint64_t> complaints;  // what the checker said, and of how many states
  double seconds = 0;
  bool cancelled = false;
  bool ended_early = false;  // after max_violations

  // The smallest of the states that `about` counts; valid if there are any.
  state_line smallest;
  std::string what;         // the checker on it
  std::string place;        // where in the program
  std::uint64_t tried = 0;  // states judged to make it smaller
  // Its stores that are not as those of the other lines; all pending stores if none is.
  std::vector<crash_walk::outcome> differing;
};

struct explore_settings {
  std::uint64_t bound = 64;  // states a crash point
  std::uint64_t seed = 1;
  std::uint64_t max_violations = 20;
  std::string about;  // what the checker says of the violations that are sought; empty: any
  std::function<void(const findings&)> progress;
  std::function<bool()> cancelled;
};

// Errors: those of the checker; invalid_argument if it rejects the pool as the program left it
// without a crash.
[[nodiscard]] result<findings> explore(const trace& t, checker& c, const explore_settings& s);

struct replayed {
  judgement seen;
  std::string place;
  std::vector<crash_walk::outcome> lost, kept;  // of the pending stores
};
// One state again. image: where its bytes are written too, if not empty. Errors: invalid_argument
// if the recording has no such state.
[[nodiscard]] result<replayed> replay(const trace& t, checker& c, const state_line& line,
                                      const std::string& image);

}  // namespace stele::foreign
