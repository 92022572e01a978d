// The line that names one crash state of one run, and what there is to see at it.
//
//   redo/sps ops=100 keys=24 value=8 threads=1 seed=1 pool=65536 logs=2x4096 further=20 mutant=none
//   at=37:0.3.255 +2 at=4:1
//
// `reopen=MECHANISM`, `made-for=MECHANISM` and `sync=OPERATIONS` stand there when the plan has
// them. Each `at=POINT:CHOICE` is a crash: the point's number on its tape and an option for each
// pending line, in order. A second one is a crash in the recovery from the first, recorded with the
// number of further operations that `+N` says.
#pragma once

#include <explore/explorer.h>

namespace stele::explore {

struct crash {
  std::uint64_t point = 0;
  std::vector<std::uint64_t> chosen;
  std::size_t operations = 0;  // after the recovery that this is a crash of; unused for the first
};

struct replay_line {
  plan run_plan;
  std::vector<crash> crashes;  // none: the run itself failed
};

std::string format_line(const replay_line& l);
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<replay_line> parse_line(const std::string& text);

struct replay_result {
  std::string refused;      // what recovery says of a loss, where there may be one; else empty
  std::string explanation;  // what was kept and lost at each crash, for people
  std::string problem;      // empty: nothing is wrong with that state
};
[[nodiscard]] result<replay_result> replay(const replay_line& l);

}  // namespace stele::explore
