// delayed: another medium, as slow as a given memory technology. Reads and evictions cost nothing
// extra.
//
// Two models. With only `latency_ns`, every line flushed or streamed adds that latency, as in Lu,
// Shu and Sun, "Blurred Persistence" (2016), section 5.1. With a bandwidth as well, a fence takes
// max(latency, bytes / bandwidth), the model of "Log-structured non-volatile main memory" (2017),
// section 5.1. The bandwidth is that of the medium: what threads fence at the same time is
// transferred one after the other. The latency is each fence's own. The fence that orders the lines
// spins for that time.
//
// With `cache_bytes_per_ns` the whole cache can be persisted at once (the paper's wbinvd, which is
// the kernel's). It is emulated: nothing is written back, and it takes one latency plus 64 bytes
// for each change of a line of home since the last time, over that bandwidth. A line counts each
// time that a thread comes back to it: an upper bound of what a cache would write back. Changes
// count from the thread's next fence on.
#pragma once

#include <media/cpu.h>
#include <media/media.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

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
    // When the medium has transferred all that was fenced: nanoseconds of the steady clock.
    alignas(line_size) std::int64_t free_at_ns = 0;
    // Lines of home that stores have changed since bulk_persist().
    alignas(line_size) std::uint64_t changed_lines = 0;
  };
  static constexpr bool under_exploration = Inner::under_exploration;
  static constexpr auto whole_cache = media::whole_cache::supported;

  delayed(shared& s, unsigned thread)
      : inner_(s.inner, thread),
        cost_(s.cost),
        home_(s.home),
        free_at_ns_(s.free_at_ns),
        all_changed_lines_(s.changed_lines),
        count(inner_.count) {}

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
    if (changed_lines_ != 0)
      all_changed_lines_.fetch_add(std::exchange(changed_lines_, 0), std::memory_order_relaxed);
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
    if (std::less<>{}(static_cast<const std::byte*>(to), home_)) return;
    const auto line = reinterpret_cast<std::uintptr_t>(to) / line_size;
    changed_lines_ += line_count(to, size) - (line == last_line_ ? 1 : 0);
    last_line_ = line;
  }
  void persist_whole_cache() {
    fence();
    const auto lines =
        static_cast<double>(all_changed_lines_.exchange(0, std::memory_order_relaxed));
    const double ns = cost_.latency_ns + lines * line_size / cost_.cache_bytes_per_ns;
    spin_until(now_ns() + static_cast<std::int64_t>(ns));
  }
  void wait() noexcept {
    if (pending_lines_ == 0) return;
    spin_until(transferred_at(now_ns()));
    pending_lines_ = 0;
  }
  static void spin_until(std::int64_t ns) noexcept {
    while (now_ns() < ns) cpu::relax();
  }
  static std::int64_t now_ns() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::int64_t transferred_at(std::int64_t now) noexcept {
    const double lines = static_cast<double>(pending_lines_);
    if (cost_.bytes_per_ns == 0) return now + static_cast<std::int64_t>(lines * cost_.latency_ns);
    const auto transfer = static_cast<std::int64_t>(lines * line_size / cost_.bytes_per_ns);
    std::int64_t busy_until = free_at_ns_.load(std::memory_order_relaxed), end;
    do {
      end = std::max(now, busy_until) + transfer;
    } while (!free_at_ns_.compare_exchange_weak(busy_until, end, std::memory_order_relaxed));
    return std::max(now + cost_.latency_ns, end);
  }

  Inner inner_;
  delay cost_;
  const std::byte* home_;
  std::atomic_ref<std::int64_t> free_at_ns_;
  std::atomic_ref<std::uint64_t> all_changed_lines_;
  std::uint64_t changed_lines_ = 0;  // by this thread, since its last fence
  std::uintptr_t last_line_ = 0;
  std::size_t pending_lines_ = 0;

 public:
  counters& count;
};

}  // namespace stele::media
