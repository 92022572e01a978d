// delayed: another medium, as slow as a given memory technology. Reads and evictions cost nothing
// extra.
//
// The fence that orders lines spins for what they are charged (charging.h). A bandwidth is that of
// the medium: what threads fence at the same time is transferred one after the other. The latency
// is each fence's own.
//
// With `cache_bytes_per_ns` the whole cache can be persisted at once (the paper's wbinvd, which is
// the kernel's). It is emulated: nothing is written back, and it takes one latency plus 64 bytes
// for each change of a line of home since the last time, over that bandwidth. A line counts each
// time that a thread comes back to it: an upper bound of what a cache would write back. Changes
// count from the thread's next fence on.
#pragma once

#include <lab_media/charging.h>
#include <media/cpu.h>

#include <atomic>
#include <chrono>
#include <functional>

namespace stele::media {

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
        uncharged_(s.cost),
        count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) {
    inner_.store(to, from, size);
    if (cost_.cache_bytes_per_ns != 0) count_changed_lines(to, size);
  }
  void stream(void* to, const void* from, std::size_t size) {
    inner_.stream(to, from, size);
    uncharged_.stream(to, size);
  }
  void flush(const void* at, std::size_t size) {
    inner_.flush(at, size);
    uncharged_.flush(at, size);
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
    for (const range& r : ranges) uncharged_.flush(r.begin, r.size);
    wait();
  }
  void note(tape_mark m, std::uint64_t argument) { inner_.note(m, argument); }
  bool failed() const noexcept { return inner_.failed(); }
  // Latencies that this thread has paid.
  std::uint64_t charged_latencies() const noexcept { return charged_latencies_; }

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
    ++charged_latencies_;
    spin_until(now_ns() + static_cast<std::int64_t>(ns));
  }
  void wait() {
    if (uncharged_.none()) return;
    const std::int64_t now = now_ns();  // finding the charge is a part of it
    const charge c = uncharged_.take();
    charged_latencies_ += c.latencies;
    spin_until(std::max(now + static_cast<std::int64_t>(c.own_ns),
                        transferred_at(now, static_cast<std::int64_t>(c.transfer_ns))));
  }
  static void spin_until(std::int64_t ns) noexcept {
    while (now_ns() < ns) cpu::relax();
  }
  static std::int64_t now_ns() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::int64_t transferred_at(std::int64_t now, std::int64_t transfer_ns) noexcept {
    if (cost_.bytes_per_ns == 0) return now;
    std::int64_t busy_until = free_at_ns_.load(std::memory_order_relaxed), end;
    do {
      end = std::max(now, busy_until) + transfer_ns;
    } while (!free_at_ns_.compare_exchange_weak(busy_until, end, std::memory_order_relaxed));
    return end;
  }

  Inner inner_;
  delay cost_;
  const std::byte* home_;
  std::atomic_ref<std::int64_t> free_at_ns_;
  std::atomic_ref<std::uint64_t> all_changed_lines_;
  std::uint64_t changed_lines_ = 0;  // by this thread, since its last fence
  std::uintptr_t last_line_ = 0;
  uncharged_lines uncharged_;
  std::uint64_t charged_latencies_ = 0;

 public:
  counters& count;
};

}  // namespace stele::media
