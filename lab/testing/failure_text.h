// What a violation of a user's structure says: the crash, what had been
// acknowledged, what was found against what was expected.
#pragma once

#include <explore/replay.h>
#include <testing/user_workload.h>

#include <string>

namespace stele::testing {

// Goes to the crash of a line again and judges it. Errors: those of a replay;
// the line's choices do not fit the run.
struct repeated_crash {
  std::string problem;  // empty: the structure is as it should be
  std::string where;    // the crashes and what was expected, in lines
  std::string stores;   // which stores reached media, in lines
};
[[nodiscard]] result<repeated_crash> repeat_crash(explore::run_crash line, const std::string& name,
                                                  const detail::structure_maker& make,
                                                  unsigned per_transaction);

}  // namespace stele::testing
