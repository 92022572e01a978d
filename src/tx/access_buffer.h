// A lock-free buffer of the home lines that a thread has loaded: a sample of the newest, in one
// transaction of 16. archapt estimates from it what the cache holds. One thread appends, another
// drains. Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent
// Memory" (2019), section IV.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace stele::detail {

class access_buffer {
 public:
  static constexpr std::uint64_t capacity = 4096;
  static constexpr std::uint64_t sample_interval = 4;
  static constexpr unsigned transactions_a_sample = 16;

  // Called by the thread that loads. begin_transaction() begins one and returns whether to append
  // its loads; is_next_sampled() foretells that, so that the others keep the fast paths.
  bool begin_transaction() noexcept { return ++transactions_ % transactions_a_sample == 0; }
  bool is_next_sampled() const noexcept { return (transactions_ + 1) % transactions_a_sample == 0; }

  // Called by the thread that loads. Consecutive loads of one line count as one.
  void append(std::uint64_t offset) noexcept {
    const std::uint64_t line = offset / 64;
    if (line == last_) return;
    last_ = line;
    if (++seen_ % sample_interval != 0) return;
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    offsets_[tail % capacity].store(offset, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
  }

  // Calls each(offset) for the entries since the last drain, oldest first. One thread at a time.
  // If the loading thread overwrites an entry meanwhile, its newer offset is passed instead.
  template <class Each>
  void drain(Each&& each) {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    for (head_ = std::max(head_, tail - std::min(tail, capacity)); head_ != tail; ++head_)
      each(offsets_[head_ % capacity].load(std::memory_order_relaxed));
  }

 private:
  unsigned transactions_ = 0;
  std::uint64_t last_ = ~std::uint64_t{0}, seen_ = 0;
  std::atomic<std::uint64_t> tail_{0};
  std::array<std::atomic<std::uint64_t>, capacity> offsets_{};
  alignas(64) std::uint64_t head_ = 0;
};

}  // namespace stele::detail
