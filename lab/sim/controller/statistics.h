// Counts and times of a memory, summed over its channels.
#pragma once

#include <sim/archive.h>
#include <sim/time.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stele::sim {

struct span_statistics {
  std::uint64_t count = 0;
  picosecond_sum sum_ps = 0;
  picoseconds max_ps = 0;

  void add(picoseconds span) noexcept { ++count, sum_ps += span, max_ps = std::max(max_ps, span); }
  void add(const span_statistics& s) noexcept {
    count += s.count, sum_ps += s.sum_ps, max_ps = std::max(max_ps, s.max_ps);
  }
  // Leaves the maximum, which is then that of both.
  void subtract(const span_statistics& s) noexcept { count -= s.count, sum_ps -= s.sum_ps; }
  double mean_ns() const noexcept {
    return count ? static_cast<double>(sum_ps) / static_cast<double>(count) / 1000 : 0;
  }
  double max_ns() const noexcept { return static_cast<double>(max_ps) / 1000; }
  void visit_state(archive& a) { a(count, sum_ps, max_ps); }
};

// `count` times from `from` on and below `below`.
struct time_class {
  picoseconds from = 0, below = 0;
  std::uint64_t count = 0;
  friend bool operator==(const time_class&, const time_class&) = default;
};

// Counts times in classes whose width is a 64th of their power of two, so a percentile is exact to
// 1 %.
class time_histogram {
 public:
  void add(picoseconds span) {
    const std::size_t i = class_of(span);
    if (i >= counts_.size()) counts_.resize(i + 1);
    ++counts_[i], ++all_;
  }
  void add(const time_histogram& h) {
    counts_.resize(std::max(counts_.size(), h.counts_.size()));
    for (std::size_t i = 0; i < h.counts_.size(); ++i) counts_[i] += h.counts_[i];
    all_ += h.all_;
  }
  // Precondition: this one was `h` earlier.
  void subtract(const time_histogram& h) noexcept {
    for (std::size_t i = 0; i < h.counts_.size(); ++i) counts_[i] -= h.counts_[i];
    all_ -= h.all_;
  }
  // The classes with times, shortest first.
  std::vector<time_class> classes() const {
    std::vector<time_class> found;
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i] != 0) found.push_back({first_of(i), first_of(i + 1), counts_[i]});
    return found;
  }
  // The least time that this share of the times does not exceed; 0 if there are none.
  double percentile_ns(double share) const noexcept {
    const auto rank = std::max(1.0, std::ceil(share * static_cast<double>(all_)));
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (passed += counts_[i]; static_cast<double>(passed) >= rank) return middle_of(i) / 1000;
    return 0;
  }
  void visit_state(archive& a) {
    a.list(counts_, [&](std::uint64_t& n) { a(n); }, class_of(~picoseconds{0}) + 1);
    a(all_);
  }

 private:
  static constexpr unsigned parts = 64;

  static std::size_t class_of(picoseconds span) noexcept {
    if (span < parts) return span;
    const unsigned shift = static_cast<unsigned>(std::bit_width(span / parts)) - 1;
    return std::size_t{parts} * shift + (span >> shift);
  }
  static picoseconds first_of(std::size_t i) noexcept {
    return i < parts ? i : picoseconds{i % parts + parts} << (i / parts - 1);
  }
  static double middle_of(std::size_t i) noexcept {
    return static_cast<double>(first_of(i) + first_of(i + 1) - 1) / 2;
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t all_ = 0;
};

// The length of a queue over time: for any moment, the most entries that it has had since.
class queue_length {
 public:
  void grow() {
    if (++length_ == left_at_.size()) left_at_.push_back(0);
  }
  void shrink(picoseconds now) noexcept { left_at_[length_--] = now; }
  // The most entries at any moment from `from` on, `from` included.
  std::size_t longest_since(picoseconds from) const noexcept {
    std::size_t n = left_at_.size() - 1;
    while (n > length_ && left_at_[n] < from) --n;
    return n;
  }
  std::size_t length() const noexcept { return length_; }
  void visit_state(archive& a) {
    a(left_at_);
    a.index(length_, left_at_.size());
  }

 private:
  std::size_t length_ = 0;
  // For each length above the present one, when the queue last had it; ever earlier with length.
  std::vector<picoseconds> left_at_{0};
};

struct memory_statistics {
  std::uint64_t reads = 0, writes = 0;  // served by the device
  std::uint64_t forwarded_reads = 0;    // served from a queued write
  // For the reads and writes served: the row was open; no row was open; another row had to be
  // closed.
  std::uint64_t row_hits = 0, row_misses = 0, row_conflicts = 0;
  std::uint64_t activates = 0, precharges = 0, refreshes = 0;
  std::uint64_t bytes = 0;                      // transferred over the channels
  span_statistics read_wait, write_wait;        // from submission to the column command
  span_statistics read_latency, write_latency;  // from submission to completion
  time_histogram read_latencies, write_latencies;
  // Summed over banks: from the activate, or the column command of a row hit, until the data has
  // moved and the cells hold it. Closing and refreshing are not included.
  picosecond_sum bank_busy_ps = 0;
  // Summed over ranks: time with an open row; time in all.
  picosecond_sum open_ps = 0, rank_ps = 0;
  picosecond_sum open_bank_ps = 0;  // summed over banks: time with an open row
  // Of a link: from submission to answer; for a credit; time in which messages crossed it.
  span_statistics link_read_latency, link_write_latency, link_credit_wait;
  picosecond_sum link_to_device_ps = 0, link_to_host_ps = 0;
  std::vector<std::uint64_t> bank_writes;  // for each bank, channel after channel

  void add(const memory_statistics& s) {
    reads += s.reads, writes += s.writes, forwarded_reads += s.forwarded_reads;
    row_hits += s.row_hits, row_misses += s.row_misses, row_conflicts += s.row_conflicts;
    activates += s.activates, precharges += s.precharges, refreshes += s.refreshes;
    bytes += s.bytes;
    read_wait.add(s.read_wait), write_wait.add(s.write_wait);
    read_latency.add(s.read_latency), write_latency.add(s.write_latency);
    read_latencies.add(s.read_latencies), write_latencies.add(s.write_latencies);
    bank_busy_ps += s.bank_busy_ps, open_ps += s.open_ps, rank_ps += s.rank_ps;
    open_bank_ps += s.open_bank_ps;
    link_read_latency.add(s.link_read_latency), link_write_latency.add(s.link_write_latency);
    link_credit_wait.add(s.link_credit_wait);
    link_to_device_ps += s.link_to_device_ps, link_to_host_ps += s.link_to_host_ps;
    bank_writes.insert(bank_writes.end(), s.bank_writes.begin(), s.bank_writes.end());
  }
  // Leaves what came after `before`. Precondition: this one was `before` earlier, or `before` is
  // empty.
  void subtract(const memory_statistics& before) noexcept {
    reads -= before.reads, writes -= before.writes, forwarded_reads -= before.forwarded_reads;
    row_hits -= before.row_hits, row_misses -= before.row_misses;
    row_conflicts -= before.row_conflicts;
    activates -= before.activates, precharges -= before.precharges, refreshes -= before.refreshes;
    bytes -= before.bytes;
    read_wait.subtract(before.read_wait), write_wait.subtract(before.write_wait);
    read_latency.subtract(before.read_latency), write_latency.subtract(before.write_latency);
    read_latencies.subtract(before.read_latencies);
    write_latencies.subtract(before.write_latencies);
    bank_busy_ps -= before.bank_busy_ps, open_ps -= before.open_ps, rank_ps -= before.rank_ps;
    open_bank_ps -= before.open_bank_ps;
    link_read_latency.subtract(before.link_read_latency);
    link_write_latency.subtract(before.link_write_latency);
    link_credit_wait.subtract(before.link_credit_wait);
    link_to_device_ps -= before.link_to_device_ps, link_to_host_ps -= before.link_to_host_ps;
    for (std::size_t i = 0; i < before.bank_writes.size(); ++i)
      bank_writes[i] -= before.bank_writes[i];
  }
  // The size of bank_writes is the memory's, or it is empty.
  void visit_state(archive& a) {
    a(reads, writes, forwarded_reads, row_hits, row_misses, row_conflicts);
    a(activates, precharges, refreshes, bytes, read_wait, write_wait, read_latency, write_latency);
    a(read_latencies, write_latencies, bank_busy_ps, open_ps, rank_ps, open_bank_ps);
    a(link_read_latency, link_write_latency, link_credit_wait, link_to_device_ps, link_to_host_ps);
    a.fixed(bank_writes);
  }
};

}  // namespace stele::sim
