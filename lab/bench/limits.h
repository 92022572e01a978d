// The cost of durability on the machine itself, measured beside the contenders; no software is
// faster than these limits.
#pragma once

#include <bench/contender.h>
#include <stele/error.h>

#include <string>

namespace stele::bench {

// Nanoseconds per operation, on memory of a file in `dir`, one thread.
struct memory_costs {
  double streamed_line_and_fence = 0;  // the next line of a 4 MiB ring streamed, then a fence
  double flushed_line_and_fence = 0;   // a random line of 64 MiB stored and flushed, then a fence
  double empty_fence = 0;
};

// Takes about 20 ms. Errors: io.
[[nodiscard]] result<memory_costs> measure_memory(const std::string& dir);

// Nanoseconds to overwrite a 4 KiB block of a preallocated file in `dir` and fdatasync it. Takes 32
// syncs. Errors: io.
[[nodiscard]] result<double> measure_synced_block(const std::string& dir);

// Nanoseconds that the driver of every contender takes for a transaction that does nothing: drawing
// the task's operations, counting, timing a sample. One thread; takes 10 ms. `draws` is the task's
// workload.
double measure_driver(const task& t, const workloads::workload& draws);

}  // namespace stele::bench
