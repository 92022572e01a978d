// delayed: another medium, as slow as a given memory technology. Reads and evictions cost nothing
// extra.
//
// Two models. With only `latency_ns`, every line flushed or streamed adds that latency, as in Lu,
// Shu and Sun, "Blurred Persistence" (2016), section 5.1. With a bandwidth as well, a fence takes
// max(latency, bytes / bandwidth), the model of "Log-structured non-volatile main memory" (2017).
// The fence that orders the lines spins for that time.
#pragma once

#include <media/cpu.h>
#include <media/media.h>

#include <algorithm>
#include <chrono>

namespace stele::media {

struct delay {
  std::uint32_t latency_ns = 0;
  double bytes_per_ns = 0;  // 0: each line costs the latency
};

template <class Inner>
class delayed {
 public:
  struct shared {
    typename Inner::shared inner;
    delay cost;
  };
  static constexpr bool under_exploration = Inner::under_exploration;
  static constexpr auto whole_cache = Inner::whole_cache;

  delayed(shared& s, unsigned thread)
      : inner_(s.inner, thread), cost_(s.cost), count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) { inner_.store(to, from, size); }
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
    inner_.bulk_persist(ranges);
    for (const range& r : ranges) pending_lines_ += line_count(r.begin, r.size);
    wait();
  }
  void note(tape_mark m, std::uint64_t argument) { inner_.note(m, argument); }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  void wait() noexcept {
    if (pending_lines_ == 0) return;
    const double lines = static_cast<double>(pending_lines_);
    const double ns =
        cost_.bytes_per_ns == 0
            ? lines * cost_.latency_ns
            : std::max<double>(cost_.latency_ns, lines * line_size / cost_.bytes_per_ns);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
    while (std::chrono::steady_clock::now() < until) cpu::relax();
    pending_lines_ = 0;
  }

  Inner inner_;
  delay cost_;
  std::size_t pending_lines_ = 0;

 public:
  counters& count;
};

}  // namespace stele::media
