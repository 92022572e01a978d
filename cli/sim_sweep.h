// The job list of a sweep: every combination of values, designs and tapes, one JSON object a line.
// `python -m stele.lab sweep` runs it.
#pragma once

#include <sim/config.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stele::cli {

struct sweep_axes {
  struct axis {
    std::string key;
    std::vector<std::string> values;
  };

  std::string machine;       // a file or a preset, as the user names it
  sim::machine_config base;  // what that is
  std::vector<axis> keys;    // set in this order
  std::vector<std::string> designs, tapes;
  std::uint64_t seed = 1, warm_up_transactions = 0;
};

// Checks the machine of every point and every tape, then writes the list and prints the number of
// points. Fails the command, with nothing written, when a point is wrong or stands twice.
void write_job_list(const sweep_axes& axes, const std::string& file);

}  // namespace stele::cli
