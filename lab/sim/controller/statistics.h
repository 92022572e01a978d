// Counts and times of a memory, summed over its channels.
#pragma once

#include <sim/time.h>

#include <algorithm>
#include <vector>

namespace stele::sim {

struct span_statistics {
  std::uint64_t count = 0;
  picoseconds sum_ps = 0, max_ps = 0;

  void add(picoseconds span) noexcept { ++count, sum_ps += span, max_ps = std::max(max_ps, span); }
  void add(const span_statistics& s) noexcept {
    count += s.count, sum_ps += s.sum_ps, max_ps = std::max(max_ps, s.max_ps);
  }
  double mean_ns() const noexcept {
    return count ? static_cast<double>(sum_ps) / static_cast<double>(count) / 1000 : 0;
  }
  double max_ns() const noexcept { return static_cast<double>(max_ps) / 1000; }
};

struct memory_statistics {
  std::uint64_t reads = 0, writes = 0;  // served by the device
  std::uint64_t forwarded_reads = 0;    // served from a queued write
  // For the reads and writes served: the row was open; no row was open; another row had to be
  // closed.
  std::uint64_t row_hits = 0, row_misses = 0, row_conflicts = 0;
  std::uint64_t activates = 0, precharges = 0, refreshes = 0;
  std::uint64_t bytes = 0;                // transferred over the channels
  picoseconds busy_ps = 0;                // time with an unfinished request, summed over channels
  span_statistics read_wait, write_wait;  // from submission to the column command
  span_statistics read_latency, write_latency;  // from submission to completion
  std::vector<std::uint64_t> bank_writes;       // for each bank, channel after channel
  std::uint64_t max_writes_per_line = 0;        // 0 if not counted

  void add(const memory_statistics& s) {
    reads += s.reads, writes += s.writes, forwarded_reads += s.forwarded_reads;
    row_hits += s.row_hits, row_misses += s.row_misses, row_conflicts += s.row_conflicts;
    activates += s.activates, precharges += s.precharges, refreshes += s.refreshes;
    bytes += s.bytes, busy_ps += s.busy_ps;
    read_wait.add(s.read_wait), write_wait.add(s.write_wait);
    read_latency.add(s.read_latency), write_latency.add(s.write_latency);
    bank_writes.insert(bank_writes.end(), s.bank_writes.begin(), s.bank_writes.end());
    max_writes_per_line = std::max(max_writes_per_line, s.max_writes_per_line);
  }
};

}  // namespace stele::sim
