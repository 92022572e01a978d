// How much of the memory that an allocator holds is not live data, after workloads whose object
// sizes change: the peers of figure 9 of Hu, Ren, Badam, Shu, Moscibroda, "Log-Structured
// Non-Volatile Main Memory" (2017).
//
// The workloads are in heap_workload.h. Fragmentation is 1 - live bytes at the end / the most bytes
// held. Live bytes are those requested, without rounding and headers. The most held, not what is
// held at the end, because it is what the memory must be sized for, and because what allocators
// give back they give back with time, so that the end would depend on the speed of the run. Live
// bytes are at their most at the end too, so a compacting allocator loses nothing by it.
//
// An allocator that is no peer joins by run_heap_workload() and a heap_space of what it came to
// hold.
//
// Peers are at their own settings. malloc: what the process has of private memory, 4 KiB pages (see
// malloc_process.cc). libpmemobj: its pool as far as it has grown (see libpmemobj_heap.cc). Not
// counted are page tables and, of libpmemobj, the volatile state of its heap.
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
  std::string dir = "/dev/shm";  // where pools go
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

// "glibc", "jemalloc", "mimalloc", "libpmemobj", whether or not they are installed.
std::vector<std::string> heap_peers();

// One allocator on one workload. Errors: not_found (no peer of that name), unsupported (its library
// is not installed, or this build is without it), io, full.
[[nodiscard]] result<heap_space> measure_peer(std::string_view peer, const heap_workload& w,
                                              const fragmentation_options& o);

// Every peer on every workload, one run each: the runs are deterministic but for a few pages.
// Errors: the first of measure_peer.
[[nodiscard]] result<std::vector<heap_space>> measure_peers(const fragmentation_options& o);

// For readers: the bytes of a phase here and in the paper.
std::string scale_of(const fragmentation_options& o);

}  // namespace stele::bench
