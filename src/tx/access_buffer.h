// Which lines of home a thread has loaded, for who estimates what the cache holds: a sample of them, the newest, left by one thread and
// taken by another. Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019), section IV.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace stele::detail {

class access_buffer {
 public:
  static constexpr std::uint64_t size = 4096;
  static constexpr std::uint64_t one_of = 4;

  // The thread that loads. Loads of one line in a row are one.
  void note(std::uint64_t offset) noexcept {
    const std::uint64_t line = offset / 64;
    if (line == last_) return;
    last_ = line;
    if (++seen_ % one_of != 0) return;
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    offsets_[tail % size].store(offset, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
  }

  // One taker at a time: each(offset) for what was noted since it took the last time, oldest first. Offsets that the thread overwrites
  // meanwhile are told by their newer ones.
  template <class Each>
  void take(Each&& each) {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    for (taken_ = std::max(taken_, tail - std::min(tail, size)); taken_ != tail; ++taken_) each(offsets_[taken_ % size].load(std::memory_order_relaxed));
  }

 private:
  std::uint64_t last_ = ~std::uint64_t{0}, seen_ = 0;
  std::atomic<std::uint64_t> tail_{0};
  std::array<std::atomic<std::uint64_t>, size> offsets_{};
  alignas(64) std::uint64_t taken_ = 0;
};

}  // namespace stele::detail
