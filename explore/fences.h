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
  std::string site;                     // "bulk.h:141"
  std::vector<std::string> mechanisms;  // whose runs or recoveries pass it
  std::string what, by;                 // what noticed, and the line that replays it; empty: nothing
  std::uint64_t states = 0;             // looked at before
  bool killed() const noexcept { return !by.empty(); }
};

struct fence_choice {
  std::string mechanism;  // "" or only the fences that this one passes
  std::string site;       // "" or one of them
  std::uint64_t seed = 1;
  unsigned most_trials = 0;  // runs a site and mechanism; 0: all there are
  std::function<void(const fence_outcome&)> told;
  std::function<bool()> cancelled;
};

// A survivor has seen every run of the budget, by every mechanism that passes it.
std::vector<fence_outcome> explore_fences(const fence_choice& c);
nlohmann::json json_of(const std::vector<fence_outcome>& outcomes);

}  // namespace stele::explore
