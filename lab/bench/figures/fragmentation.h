// The share of an allocator's memory that is not live data, after workloads whose object sizes
// change: the peers of figure 9 of Hu, Ren, Badam, Shu, Moscibroda, "Log-Structured Non-Volatile
// Main Memory" (2017).
//
// The workloads are in heap_workload.h. Fragmentation is 1 - live bytes at the end / the most bytes
// held. Live bytes are the requested bytes, without rounding and headers. The maximum held counts,
// not the bytes held at the end: memory must be sized for the maximum, and allocators give memory
// back after some time, so that the value at the end would depend on the speed of the run. Live
// bytes have their maximum at the end too, so this costs a compacting allocator nothing.
//
// Another allocator is added with run_heap_workload() and a heap_space of the bytes that it held.
//
// Peers have their default settings. malloc: the private memory of the process, 4 KiB pages (see
// malloc_process.cc). libpmemobj: its pool at its final size (see libpmemobj_heap.cc). Page tables
// and libpmemobj's volatile heap state are not counted.
#pragma once

#include <bench/figures/heap_workload.h>
#include <stele/error.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

struct fragmentation_options {
  std::uint64_t phase_bytes = std::uint64_t{256} << 20;  // 1 GB in the paper
  std::uint64_t seed = 1;
  std::string dir = "/dev/shm";  // the folder for pools
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct heap_space {
  std::string allocator, workload;
  std::uint64_t live_bytes = 0, held_bytes = 0;

  double fragmentation() const noexcept {
    return held_bytes == 0 ? 0
                           : 1 - static_cast<double>(live_bytes) / static_cast<double>(held_bytes);
  }
};

// "glibc", "jemalloc", "mimalloc", "libpmemobj", installed or not.
std::vector<std::string> heap_peers();

// Measures one allocator on one workload. Errors: not_found (unknown peer), unsupported (its
// library is not installed, or this build lacks it), io, full.
[[nodiscard]] result<heap_space> measure_peer(std::string_view peer, const heap_workload& w,
                                              const fragmentation_options& o);

// Measures every peer on every workload, one run each: the runs are deterministic except for a few
// pages. Errors: the first of measure_peer.
[[nodiscard]] result<std::vector<heap_space>> measure_peers(const fragmentation_options& o);

// A text for readers: the bytes of a phase here and in the paper.
std::string scale_of(const fragmentation_options& o);

}  // namespace stele::bench
