// The project's performance targets, each measured beside the system that it is relative to: `stele
// bench all`.
#pragma once

#include <stele/error.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stele::bench {

// One target: `measured` must be at least `bound` or, for costs, at most.
struct performance_target {
  std::string what, unit;
  double bound = 0, measured = 0;
  bool at_most = false;
  std::string detail;    // how it was measured
  bool has_mark = true;  // false: it is measured and told; there is no bound
  bool met() const noexcept { return at_most ? measured <= bound : measured >= bound; }
};

struct target_options {
  std::string dir = "/dev/shm";
  std::string file_dir = ".";       // a folder on the device to measure
  std::string configs = "configs";  // the folder of machine files of the simulator
  unsigned runs = 5;
  double seconds = 0.5;
  // Of Redis: keys that are restarted and replicated, and operations that must not make a pool
  // grow.
  std::uint64_t keys = 1'000'000, operations = 1'000'000;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<void(const performance_target&)> measured = [](const performance_target&) {
  };  // called for each target when it is measured
  std::function<bool()> cancelled = [] { return false; };
};

// Errors: cancelled, and those of the measurements. not_found, for a rival that is not built
// in.
[[nodiscard]] result<std::vector<performance_target>> measure_targets(const target_options& o);
// The targets of the mechanism log_structured alone, after "Log-Structured Non-Volatile Main
// Memory" (2017): `stele bench lsnvmm`.
[[nodiscard]] result<std::vector<performance_target>> measure_lsnvmm_targets(
    const target_options& o);
// The default mechanism beside the best published peers, those that are built in: `stele bench
// peers`.
[[nodiscard]] result<std::vector<performance_target>> measure_peer_targets(const target_options& o);
// Long reads beside writers: `stele bench reads`.
[[nodiscard]] result<std::vector<performance_target>> measure_read_targets(const target_options& o);
// Reads by other processes beside a writer: `stele bench readers`.
[[nodiscard]] result<std::vector<performance_target>> measure_reader_targets(
    const target_options& o);
// The key-value store beside other embedded stores, commits on a file, checking and copying a pool:
// `stele bench store`. A target over a rival that is not built in counts as not met.
[[nodiscard]] result<std::vector<performance_target>> measure_store_targets(
    const target_options& o);
// SQLite on pools beside SQLite on its own files: `stele bench sqlite`. Errors: also unsupported,
// where the build has no SQLite.
[[nodiscard]] result<std::vector<performance_target>> measure_sqlite_targets(
    const target_options& o);
// Redis on pools beside Redis on its own files: `stele bench redis`. Errors: also unsupported,
// where the build has no Redis.
[[nodiscard]] result<std::vector<performance_target>> measure_redis_targets(
    const target_options& o);
// How full values of many sizes fill a pool of 128 MiB: `stele bench space`.
[[nodiscard]] result<std::vector<performance_target>> measure_space_targets(
    const target_options& o);
// The simulator's speeds: `stele bench sim`. These targets are absolute numbers, not ratios to
// another program.
[[nodiscard]] result<std::vector<performance_target>> measure_sim_targets(const target_options& o);

}  // namespace stele::bench
