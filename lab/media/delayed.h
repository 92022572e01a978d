// delayed: another medium, as slow as a given memory technology. Reads and evictions cost nothing
// extra.
//
// Two models. With only `latency_ns`, every line flushed or streamed adds that latency, as in Lu,
// Shu and Sun, "Blurred Persistence" (2016), section 5.1. With a bandwidth as well, a fence takes
// max(latency, bytes / bandwidth), the model of "Log-structured non-volatile main memory" (2017).
// The fence that orders the lines spins for that time.
//
// With `cache_bytes_per_ns` the whole cache can be persisted at once (the paper's wbinvd, which is
// the kernel's). It is emulated: nothing is written back, and it takes one latency plus 64 bytes
// for each change of a line of home since the last time, over that bandwidth. A line counts each
// time that a thread comes back to it: an upper bound of what a cache would write back.
#pragma once

#include <media/cpu.h>
#include <media/media.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace stele::media {

struct delay {
  std::uint32_t latency_ns = 0;
  double bytes_per_ns = 0;        // 0: each line costs the latency
  double cache_bytes_per_ns = 0;  // 0: the whole cache cannot be persisted at once
};

template <class Inner>
class delayed {
 public:
  struct shared {
    typename Inner::shared inner;
    delay cost;
    const std::byte* home = nullptr;
    // Of each thread: lines of home that its stores changed. All are added before the first store.
    std::vector<const base::relaxed_counter*> changed_lines = {};
    std::uint64_t persisted_lines =
        0;  // of those, by bulk_persist(), which one thread at a time calls
  };
  static constexpr bool under_exploration = Inner::under_exploration;
  static constexpr auto whole_cache = media::whole_cache::supported;

  delayed(shared& s, unsigned thread)
      : shared_(s), inner_(s.inner, thread), cost_(s.cost), count(inner_.count) {
    s.changed_lines.push_back(&changed_lines_);
  }
  delayed(const delayed&) = delete;
  delayed& operator=(const delayed&) = delete;

  void store(void* to, const void* from, std::size_t size) {
    inner_.store(to, from, size);
    if (cost_.cache_bytes_per_ns != 0) count_changed_lines(to, size);
  }
  void stream(void* to, const void* from, std::size_t size) {
    inner_.stream(to, from, size);
    pending_lines_ += size / line_size;
  }
  void flush(const void* at, std::size_t size) {
    inner_.flush(at, size);
    pending_lines_ += line_count(at, size);
  }
  void fence() {
    inner_.fence();
    wait();
  }
  void bulk_persist(std::span<const range> ranges) {
    if (cost_.cache_bytes_per_ns != 0) return persist_whole_cache();
    inner_.bulk_persist(ranges);
    for (const range& r : ranges) pending_lines_ += line_count(r.begin, r.size);
    wait();
  }
  void note(tape_mark m, std::uint64_t argument) { inner_.note(m, argument); }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  void count_changed_lines(const void* to, std::size_t size) noexcept {
    if (std::less<>{}(static_cast<const std::byte*>(to), shared_.home)) return;
    const auto line = reinterpret_cast<std::uintptr_t>(to) / line_size;
    changed_lines_ += line_count(to, size) - (line == last_line_ ? 1 : 0);
    last_line_ = line;
  }
  void persist_whole_cache() noexcept {
    inner_.fence();
    std::uint64_t changed = 0;
    for (const auto* of_thread : shared_.changed_lines) changed += *of_thread;
    const auto lines = static_cast<double>(changed - shared_.persisted_lines);
    shared_.persisted_lines = changed;
    spin(cost_.latency_ns + lines * line_size / cost_.cache_bytes_per_ns);
  }
  void wait() noexcept {
    if (pending_lines_ == 0) return;
    const double lines = static_cast<double>(pending_lines_);
    const double ns =
        cost_.bytes_per_ns == 0
            ? lines * cost_.latency_ns
            : std::max<double>(cost_.latency_ns, lines * line_size / cost_.bytes_per_ns);
    spin(ns);
    pending_lines_ = 0;
  }
  static void spin(double ns) noexcept {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
    while (std::chrono::steady_clock::now() < until) cpu::relax();
  }

  shared& shared_;
  base::relaxed_counter changed_lines_;
  std::uintptr_t last_line_ = 0;
  Inner inner_;
  delay cost_;
  std::size_t pending_lines_ = 0;

 public:
  counters& count;
};

}  // namespace stele::media
