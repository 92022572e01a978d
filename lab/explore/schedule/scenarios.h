// What is run under schedules, mechanism by mechanism: short transactions that meet, a truncation
// in their midst, records that outgrow a log, the heap, more threads than logs, and other work
// beside.
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
  std::uint64_t bound = 16;   // crash states a crash point
  double weight = 1;          // of a mechanism's schedules
};

// Of one mechanism, with this seed.
std::vector<scenario> scenarios_of(std::string_view mechanism, std::uint64_t seed);

struct sweep_outcome {
  std::string mechanism, scenario;
  schedule_findings found;
};
struct sweep_settings {
  std::string mechanism;             // empty: all
  std::uint64_t schedules = 40'000;  // of each mechanism
  std::uint64_t seed = 1;
  double seconds = 0;  // of each scenario in a round; 0: until its schedules are made
  base::mutant plant = base::mutant::none;
  bool stop_at_violation = false;
  std::function<void(const sweep_outcome&)> on_outcome;
};
// Errors: what a scenario's pool cannot be made for.
[[nodiscard]] result<std::vector<sweep_outcome>> sweep(const sweep_settings& s);

// Each bug that only overlapping commits show, planted, and what found it.
struct overlap_mutant {
  std::string name, mechanism, scenario, what, line;
  double seconds = 0;
  std::uint64_t schedules = 0;
  bool killed() const noexcept { return !what.empty(); }
};
struct overlap_mutant_selection {
  std::string name, mechanism;       // empty: all
  bool once = false;                 // each in the first mechanism that it is a bug of, not in all
  std::uint64_t schedules = 40'000;  // of each, until it has survived
  std::uint64_t seed = 1;
  std::function<void(const overlap_mutant&)> on_outcome;
};
[[nodiscard]] result<std::vector<overlap_mutant>> sweep_mutants(const overlap_mutant_selection& c);

}  // namespace stele::explore
