// The groups of targets that measure_targets combines.
#pragma once

#include <bench/compare.h>
#include <bench/targets.h>

namespace stele::bench {

using target_group = result<> (*)(const target_options& o,
                                  std::vector<performance_target>& targets);

// The mechanism default on a workload, with the runs and folders of `o`.
comparison of(const target_options& o, const char* workload, std::size_t value_size,
              std::size_t operations);
// Median throughput of a system; 0: it has no row.
double rate(const report& r, std::string_view system);
// Throughput of the mechanism default over that of a rival. The rival's row may have a remark after
// its name. 0 when the build has no such rival; then no target is met.
double over_rival(const report& r, std::string_view rival);

// Those of these rivals that the build has.
std::vector<std::string> those_built(std::vector<std::string> wanted);

// Targets of the default mechanism, and of those after "Blurred Persistence" (2016).
const std::vector<target_group>& default_targets();
// Targets of the mechanism log_structured.
const std::vector<target_group>& lsnvmm_targets();
// Targets of the default mechanism over the best published peers.
const std::vector<target_group>& peer_targets();
// Targets of long reads beside writers.
const std::vector<target_group>& read_targets();
// Targets of reads by other processes.
const std::vector<target_group>& reader_targets();
// Targets of SQLite on pools.
const std::vector<target_group>& sqlite_targets();
// Targets of Redis on pools.
const std::vector<target_group>& redis_targets();

}  // namespace stele::bench
