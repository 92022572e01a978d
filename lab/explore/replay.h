// A crash state of a run, and its replay.
#pragma once

#include <explore/explorer.h>
#include <explore/replay_line.h>

namespace stele::explore {

struct run_crash {
  static constexpr std::string_view engine = "run";
  plan run_plan;
  // Each but the first is in the recovery from the one before, which was recorded with this many
  // operations after it. Empty: the run itself failed.
  std::vector<crash> crashes = {};
  std::size_t recovery_operations = 2;
};
line_fields fields_of(run_crash& c);

struct replay_result {
  std::string refused;      // recovery's sentence about a loss, where a loss is allowed; else empty
  std::string explanation;  // for people: what was kept and lost at each crash
  std::string problem;      // empty: nothing is wrong with the state
  // The run, or what followed the last crash but one, and what was promised at the last crash.
  run_history history;
  std::uint64_t acknowledged = 0, invoked = 0;
};
[[nodiscard]] result<replay_result> replay(const run_crash& l);

}  // namespace stele::explore
