// What runs under schedules, mechanism by mechanism: short transactions that conflict, truncations
// among them, records that outgrow a log, the heap, more threads than logs, other work on the pool.
#pragma once

#include <explore/schedule/schedules.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::explore {

struct scenario {
  std::string name;
  plan run_plan;
  concurrency_plan concurrent;
  unsigned preemptions = 2;
  double random_share = 0.5;  // of its schedules
  std::uint64_t bound = 16;   // crash states for each crash point
  double weight = 1;          // its share of a mechanism's schedules
};

// The scenarios of one mechanism, with this seed.
std::vector<scenario> scenarios_of(std::string_view mechanism, std::uint64_t seed);

struct sweep_outcome {
  std::string mechanism, scenario;
  schedule_findings found;
};
struct sweep_settings {
  std::string mechanism;             // empty: all
  std::string scenario;              // empty: all
  std::string prefix;                // of the names of scenarios; empty: all
  std::uint64_t schedules = 40'000;  // of each mechanism
  std::uint64_t seed = 1;
  double seconds = 0;  // of each scenario in a round; 0: until its schedules are made
  base::mutant plant = base::mutant::none;
  bool stop_at_violation = false;
  std::function<void(const sweep_outcome&)> on_outcome;
};
// Errors: those of making the pool of a scenario.
[[nodiscard]] result<std::vector<sweep_outcome>> sweep(const sweep_settings& s);

// A planted bug that only overlapping commits show, in one mechanism, and what found it.
struct overlap_mutant {
  std::string name, mechanism, scenario, what, line;
  double seconds = 0;
  std::uint64_t schedules = 0;
  bool killed() const noexcept { return !what.empty(); }
};
struct overlap_mutant_selection {
  std::string name, mechanism;       // empty: all
  bool once = false;                 // plant each in the first mechanism that it names, not in all
  bool known = false;                // run only the scenario that the table names, if it does
  std::uint64_t schedules = 40'000;  // of each; then it has survived
  std::uint64_t seed = 1;
  std::function<void(const overlap_mutant&)> on_outcome;
};
[[nodiscard]] result<std::vector<overlap_mutant>> sweep_mutants(const overlap_mutant_selection& c);

}  // namespace stele::explore
