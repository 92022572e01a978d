// What a memory did in a part of a run, as quantities of a result.
#pragma once

#include <sim/controller/controller.h>
#include <sim/result.h>

namespace stele::sim {

// The part of a run from `from`, when the statistics were `before`, until `until`.
struct memory_part {
  memory_statistics before;
  picoseconds from = 0, until = 0;
};

// Adds counts, energy, bandwidth, latencies, queues and busy banks, with paths that begin with
// `name`. Precondition: until >= the event queue's now.
void add_memory(run_result& r, const std::string& name, memory_system& m, const memory_part& part);

// Adds the wear of a memory whose cells wear out, and the lifetimes that follow from it. `run`: the
// time in which the writes came.
void add_wear(run_result& r, const std::string& name, const memory_system& m, picoseconds run);

// Adds the histograms of its latencies.
void add_histograms(run_result& r, const std::string& name, memory_system& m,
                    const memory_part& part);

}  // namespace stele::sim
