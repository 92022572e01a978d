// The line that names one crash state of one run, and its replay.
//
//   redo/sps ops=100 keys=24 value=8 threads=1 seed=1 pool=65536 logs=2x4096 further=20 mutant=none
//   at=37:0.3.255 +2 at=4:1
//
// `reopen=MECHANISM`, `made-for=MECHANISM` and `sync=OPERATIONS` are present when the plan has
// them. Each `at=POINT:CHOICE` is a crash: the number of the crash point on its tape, and an option
// for each pending unit, in order. A second crash is in the recovery from the first, which was
// recorded with `+N` further operations.
#pragma once

#include <explore/explorer.h>

namespace stele::explore {

struct crash {
  std::uint64_t point = 0;
  std::vector<std::uint64_t> chosen;
  std::size_t operations = 0;  // applied after the recovery; unused for the first crash
};

struct replay_line {
  plan run_plan;
  std::vector<crash> crashes;  // empty: the run itself failed
};

std::string format_line(const replay_line& l);
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<replay_line> parse_line(const std::string& text);

struct replay_result {
  std::string refused;      // recovery's sentence about a loss, where a loss is allowed; else empty
  std::string explanation;  // for people: what was kept and lost at each crash
  std::string problem;      // empty: nothing is wrong with the state
};
[[nodiscard]] result<replay_result> replay(const replay_line& l);

}  // namespace stele::explore
