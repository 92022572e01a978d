// Crashes at random moments of a run behind a write-back cache, each judged by real recovery: what
// a simulator with that cache would leave on media, found without simulating anything but the
// cache.
//
// A run is recorded once and played through the cache several times, with crashes every few events;
// from pass to pass the seed changes, and with it the moments, what of all that was on its way
// arrived, and what the random policies evict. Some of the recoveries are recorded in turn,
// together with what is done after them, and crashed as well. A crash is named by seed and event of
// its pass, whatever else the passes did. Runs of further seeds follow. The demands on the
// recovered state are those of explorer.h.
#pragma once

#include <explore/cache_sets.h>
#include <explore/explorer.h>
#include <explore/replay.h>

#include <span>
#include <string>

namespace stele::explore {

struct cache_settings {
  std::vector<std::string_view> policies = all_policies();  // each gets its share
  std::size_t lines = 64, ways = 4;
  std::uint64_t crashes = 100'000;
  std::uint64_t crashes_a_run = 2'000;  // then another is recorded, of the next seed
  bool in_recoveries = true;            // some of the crashes are in recoveries
  std::size_t recovery_operations = 2;  // operations after a recorded recovery
  std::size_t max_violations = 8;       // then the run ends
  std::function<bool()> cancelled;
  std::function<void(const findings&)> progress;  // now and then
};

// `states` are crashes, `distinct` those that differ from all before. Errors: invalid_argument for
// a cache that there cannot be; what making the subject returns.
[[nodiscard]] result<findings> crash_behind_cache(const plan& p, const cache_settings& s);
// The same in a process of its own, which may die.
[[nodiscard]] result<findings> crash_behind_cache_isolated(const plan& p, const cache_settings& s);

struct cache_moment {
  std::uint64_t seed = 0;      // of the pass
  std::uint64_t event = 0;     // of the tape that the crash comes before
  std::size_t operations = 0;  // after the recovery that this is a crash of; unused for the first
};
struct cache_crash {
  plan run_plan;
  cache_geometry cache;
  std::vector<cache_moment>
      moments;  // the second one is in the recovery from the first; none: the run itself failed
};

//   cache redo/sps ops=100 ... mutant=none policy=plru lines=64 ways=4 at=17:812 +2 at=90125:33
std::string format_line(const cache_crash& c);
// Whether a line names such a crash.
bool names_cache_crash(std::string_view line) noexcept;
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<cache_crash> parse_cache_line(const std::string& line);
[[nodiscard]] result<replay_result> replay(const cache_crash& c);

}  // namespace stele::explore
