// Shared by the figures of the DP2 evaluation: the value sizes, the tapes that are replayed to the
// controller, and its measurement.
#pragma once

#include <bench/figures/sweep.h>
#include <sim/dp2/pcm.h>
#include <sim/feed/write_replay.h>

#include <array>

namespace stele::bench::dp2 {

inline constexpr std::array<std::size_t, 5> value_sizes = {8, 64, 256, 1024, 4096};
inline constexpr std::array<const char*, 5> workloads = {"sps", "rbtree", "hash", "kv", "bptree"};
inline constexpr double long_retention_s = 1e7, short_retention_s = 1e4;
// The systems of figures 9 and 10, under the options' charging rule.
std::vector<entry> systems(const sweep_options& o);
std::vector<std::string> value_axis();
std::vector<std::string> workload_axis();

// A recorded run of the mechanism base on the workload, after filling, as its writes and barriers.
struct recorded_trace {
  std::unique_ptr<media::tape_writer> tape;
  [[nodiscard]] result<sim::write_trace> trace(bool truncations = true) const;
  media::tape_header header() const;
};
[[nodiscard]] result<recorded_trace> trace_of(const sweep_options& o, const std::string& workload,
                                              std::size_t value_size, unsigned threads);

// How the controller serves a trace. Without truncations of logs the trace loses data.
struct controller_setting {
  const char* scheduler;
  double log_retention_s;
  const char* truncation_retention = "log";
  bool truncations = true;
};
// The controller's write bandwidth on the trace, in bytes per second.
[[nodiscard]] result<double> bandwidth_of(const recorded_trace& t, const controller_setting& how);

struct write_counts {
  std::uint64_t log = 0, commit = 0, data = 0;  // lines
  double log_share() const noexcept {
    return static_cast<double>(log + commit) / static_cast<double>(log + commit + data);
  }
};
[[nodiscard]] result<write_counts> count_writes(const recorded_trace& t);

// A series with one value for each place.
series empty_series(std::string name, std::string label, std::size_t places);
void put(series& s, std::size_t place, double value);

// Figures 5, 6, 8 and endurance: the simulated controller.
[[nodiscard]] result<> measure_rules(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_threads(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_rules_with_dual(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_endurance(const sweep_options& o, chart& into);
// Figures 2, 7, 9, 10: transactions on emulated banks.
[[nodiscard]] result<> measure_breakdown(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_retention(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_value_sizes(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_workloads(const sweep_options& o, chart& into);

}  // namespace stele::bench::dp2
