// Leaves out each fence of the library, one at a time, and looks for a violation. Running the
// mechanisms finds the places of the fences, so nobody has to think of these bugs.
#pragma once

#include <explore/explorer.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stele::explore {

struct fence_outcome {
  std::string site;                     // "bulk_write_back.h:71:truncate"
  std::vector<std::string> mechanisms;  // mechanisms whose runs or recoveries pass this fence
  std::string what, line;               // the violation, and the line that replays it; empty: none
  // Of a survivor: what the fence is for (docs/protocol/fences.md); empty: not known.
  std::string_view reason;
  std::uint64_t states = 0;  // states explored before the violation
  bool killed() const noexcept { return !line.empty(); }
  bool unexplained() const noexcept { return !killed() && reason.empty(); }
};

struct fence_selection {
  std::string mechanism;  // "" or only the fences that this mechanism passes
  std::string site;       // "" or one of them
  std::uint64_t seed = 1;
  unsigned max_trials = 0;  // runs for each site and mechanism; 0: all
  std::function<void(const fence_outcome&)> on_outcome;
  std::function<bool()> cancelled;
};

// Every mechanism that passes a surviving fence has made every run of the budget without it.
std::vector<fence_outcome> explore_fences(const fence_selection& c);
nlohmann::json json_of(const std::vector<fence_outcome>& outcomes);

}  // namespace stele::explore
