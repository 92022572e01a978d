// The mutation score: planted bugs, one at a time, and whether the explorer sees them.
#pragma once

#include <explore/explorer.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stele::explore {

// Where a mutant must be seen: each of these shows it, or one of the mechanisms that share the
// part.
struct mutant_target {
  std::string name;
  std::vector<std::string> mechanisms;
};
// By the `of` of its entry.
std::vector<mutant_target> targets_of(std::string_view of);

struct mutant_outcome {
  base::mutant_entry mutant;
  std::string mechanism;     // that it was planted in, or the part that several share
  std::string what;          // the violation that killed it; empty: it survived
  std::string line;          // the line that replays it
  std::uint64_t states = 0;  // looked at before
  bool killed() const noexcept { return !line.empty(); }
};

struct mutant_selection {
  std::string mechanism;  // "" or the mechanism that a mutant must be able to break
  std::string name;       // "" or one mutant
  std::uint64_t seed = 1;
  std::function<void(const mutant_outcome&)> on_outcome;
  std::function<bool()> cancelled;
};

// Plants each in a process of its own. A survivor has seen every run of the budget.
std::vector<mutant_outcome> explore_mutants(const mutant_selection& c);

// Killed ones over all; 1 when there are none.
double score_of(const std::vector<mutant_outcome>& outcomes) noexcept;
nlohmann::json json_of(const std::vector<mutant_outcome>& outcomes);

}  // namespace stele::explore
