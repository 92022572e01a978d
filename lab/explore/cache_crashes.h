// Crashes at random moments of a run behind a write-back cache. The real recovery recovers each
// state and the judge judges it. The states are those that a simulator with this cache would leave
// on media; only the cache is simulated.
//
// A run is recorded once and played through the cache several times (passes), with a crash every
// few events. The seed changes from pass to pass. The seed decides the moments of the crashes,
// which of the in-flight writes arrived, and what the random policies evict. Some of the recoveries
// are recorded, with the operations after them, and crashed too. The seed and the event of its pass
// name a crash; it does not depend on other passes. More runs with further seeds follow. explorer.h
// says which recovered states are right.
#pragma once

#include <explore/cache_sets.h>
#include <explore/explorer.h>
#include <explore/replay.h>

#include <span>
#include <string>

namespace stele::explore {

struct cache_settings {
  std::vector<std::string_view> policies = all_policies();  // policies share the crashes equally
  std::size_t lines = 64, ways = 4;
  std::uint64_t crashes = 100'000;
  std::uint64_t crashes_a_run = 2'000;  // then another run with the next seed is recorded
  bool in_recoveries = true;            // some of the crashes are in recoveries
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  std::size_t max_violations = 8;       // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const findings&)> progress;  // called now and then
};

// `states` counts crashes; `distinct` counts those that differ from all before. Errors:
// invalid_argument for an impossible cache; what making the subject returns.
[[nodiscard]] result<findings> crash_behind_cache(const plan& p, const cache_settings& s);
// The same in a child process, which may die.
[[nodiscard]] result<findings> crash_behind_cache_isolated(const plan& p, const cache_settings& s);

struct cache_moment {
  std::uint64_t seed = 0;      // of the pass
  std::uint64_t event = 0;     // the crash comes before this event of the tape
  std::size_t operations = 0;  // applied after the recovery; unused for the first crash
};
struct cache_crash {
  plan run_plan;
  cache_geometry cache;
  // The second is in the recovery from the first; empty: the run itself failed.
  std::vector<cache_moment> moments;
};

//   cache redo/sps ops=100 ... mutant=none policy=plru lines=64 ways=4 at=17:812 +2 at=90125:33
std::string format_line(const cache_crash& c);
// Whether a line names a crash behind a cache.
bool names_cache_crash(std::string_view line) noexcept;
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<cache_crash> parse_cache_line(const std::string& line);
[[nodiscard]] result<replay_result> replay(const cache_crash& c);

}  // namespace stele::explore
