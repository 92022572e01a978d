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

struct cache_crash {
  static constexpr std::string_view engine = "cache";
  plan run_plan;
  cache_geometry cache = {};
  // The second is in the recovery from the first; empty: the run itself failed.
  std::vector<crash_moment> moments = {};
  std::size_t recovery_operations = 2;  // after that recovery
};
line_fields fields_of(cache_crash& c);
[[nodiscard]] result<replay_result> replay(const cache_crash& c);

}  // namespace stele::explore
