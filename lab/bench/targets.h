// The targets that the project has set itself, each measured beside what it is relative to: `stele
// bench all`.
#pragma once

#include <stele/error.h>

#include <functional>
#include <string>
#include <vector>

namespace stele::bench {

// One performance_target: at least (or, for costs, at most) `mark`.
struct performance_target {
  std::string what, unit;
  double bound = 0, measured = 0;
  bool at_most = false;
  std::string detail;  // how it was measured
  bool met() const noexcept { return at_most ? measured <= bound : measured >= bound; }
};

struct target_options {
  std::string dir = "/dev/shm";
  std::string file_dir = ".";       // on the device whose files are measured
  std::string configs = "configs";  // where the simulator's machines are
  unsigned runs = 5;
  double seconds = 0.5;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const performance_target&)> measured = [](const performance_target&) {
  };  // each, as soon as it is
  std::function<bool()> cancelled = [] { return false; };
};

// Errors: cancelled, and those of what is measured. A performance_target whose rival is not built
// in is left out.
[[nodiscard]] result<std::vector<performance_target>> measure_targets(const target_options& o);
// Those of the mechanism log_structured alone, after "Log-Structured Non-Volatile Main Memory"
// (2017): `stele bench lsnvmm`.
[[nodiscard]] result<std::vector<performance_target>> measure_lsnvmm_targets(
    const target_options& o);
// The key-value store beside other embedded stores, commits on a file, judging and copying a pool:
// `stele bench store`.
[[nodiscard]] result<std::vector<performance_target>> measure_store_targets(
    const target_options& o);
// The simulator's speeds: `stele bench sim`. What they are relative to is not another program but a
// number.
[[nodiscard]] result<std::vector<performance_target>> measure_sim_targets(const target_options& o);

}  // namespace stele::bench
