// The cost of durability on this machine, in detail: `stele bench media`.
#pragma once

#include <stele/error.h>

#include <string>
#include <utility>
#include <vector>

namespace stele::bench {

// One thread, medium adr on a file in `dir` (nanoseconds, bytes per nanosecond), and the device of
// `file_dir`.
struct machine_costs {
  double streamed_line_fence_ns = 0, flushed_line_fence_ns = 0, empty_fence_ns = 0;
  std::vector<std::pair<unsigned, double>>
      lines_fence_ns;                              // k random lines stored and flushed, one fence
  double stream_gb_per_s = 0, flush_gb_per_s = 0;  // over 64 MiB
  double synced_block_ns = 0;  // overwrite 4 KiB of a preallocated file, fdatasync
  double direct_block_ns = 0;  // the same, O_DIRECT and O_DSYNC; 0: not supported there
  std::string write_back;      // the instruction in use
};

// Medians over `runs` interleaved runs. Errors: io.
[[nodiscard]] result<machine_costs> measure_machine(const std::string& dir,
                                                    const std::string& file_dir, unsigned runs);

}  // namespace stele::bench
