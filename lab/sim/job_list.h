// The job list of a sweep: every combination of values, designs and tapes, one JSON object a line.
// `python -m stele.lab sweep` runs it.
//
// A line is the identity of its point: machine, settings, design, tape, seed and warm-up, and two
// lines are equal when these are. No line is of a point that cannot run, as far as that is known
// before a run.
#pragma once

#include <sim/config.h>
#include <stele/error.h>

namespace stele::sim {

struct sweep_axes {
  struct axis {
    std::string key;
    std::vector<std::string> values;
  };

  std::string machine;     // a file or a preset, as the user names it
  machine_config base;     // what that is
  std::vector<axis> keys;  // set in this order
  std::vector<std::string> designs, tapes;
  std::uint64_t seed = 1, warm_up_transactions = 0;
};

struct job_list {
  std::string text;
  std::size_t points = 0;
};

// Errors: a key, value, design or tape that stands twice; a machine that is wrong, or cannot run
// one of the tapes; those of opening the tapes. The sentence names the point.
[[nodiscard]] result<job_list> job_list_of(const sweep_axes& axes);

}  // namespace stele::sim
