// Each fence of the library left out, one at a time: does anything notice? These are no bugs that
// somebody thought of: the places are found by running.
#pragma once

#include <explore/explorer.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stele::explore {

struct fence_outcome {
  std::string site;                     // "bulk.h:149:truncate"
  std::vector<std::string> mechanisms;  // whose runs or recoveries pass it
  std::string what, line;    // what noticed, and the line that replays it; empty: nothing
  std::string_view reason;   // of a survivor: what it is for, that no run shows
                             // (docs/protocol/fences.md). Empty: nobody said
  std::uint64_t states = 0;  // looked at before
  bool killed() const noexcept { return !line.empty(); }
  bool unexplained() const noexcept { return !killed() && reason.empty(); }
};

struct fence_selection {
  std::string mechanism;  // "" or only the fences that this one passes
  std::string site;       // "" or one of them
  std::uint64_t seed = 1;
  unsigned max_trials = 0;  // runs a site and mechanism; 0: all there are
  std::function<void(const fence_outcome&)> on_outcome;
  std::function<bool()> cancelled;
};

// A survivor has seen every run of the budget, by every mechanism that passes it.
std::vector<fence_outcome> explore_fences(const fence_selection& c);
nlohmann::json json_of(const std::vector<fence_outcome>& outcomes);

}  // namespace stele::explore
