// Volatile locks for contenders without isolation. A transaction holds the stripes of all its keys,
// locked in ascending order so that threads cannot deadlock. A stripe is the low bits of the key's
// hash, and there are at most as many stripes as buckets, so keys of one bucket share a stripe.
// With no stripes, locking is free and protects nothing.
#pragma once

#include <stele/element.h>
#include <workloads/workload.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace stele::bench {

class stripes {
 public:
  // `count` is a power of two, or 0.
  explicit stripes(std::size_t count) : count_(count), locks_(std::make_unique<lock[]>(count)) {}

  class guard {
   public:
    guard(stripes& s, std::span<const workloads::operation> operations) : stripes_(s) {
      if (s.count_ == 0) return;
      for (const auto& op : operations) {
        stripes_held_.push_back(s.stripe_of(op.a));
        if (op.what == workloads::operation::kind::swap) stripes_held_.push_back(s.stripe_of(op.b));
      }
      std::ranges::sort(stripes_held_);
      const auto repeated = std::ranges::unique(stripes_held_);
      stripes_held_.erase(repeated.begin(), repeated.end());
      for (const std::size_t i : stripes_held_) s.locks_[i].acquire();
    }
    ~guard() {
      for (const std::size_t i : stripes_held_)
        stripes_.locks_[i].locked.store(false, std::memory_order_release);
      stripes_held_.clear();
    }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

   private:
    stripes& stripes_;
    static inline thread_local std::vector<std::size_t>
        stripes_held_;  // kept, so that a transaction allocates nothing
  };

 private:
  struct alignas(64) lock {
    std::atomic<bool> locked{false};
    void acquire() noexcept {
      for (unsigned tries = 0; locked.exchange(true, std::memory_order_acquire); ++tries)
        while (locked.load(std::memory_order_relaxed))
          if (++tries > 1000) std::this_thread::yield();
    }
  };

  std::size_t stripe_of(std::uint64_t key) const noexcept {
    return detail::hash_word(key) & (count_ - 1);
  }

  std::size_t count_;
  std::unique_ptr<lock[]> locks_;
};

}  // namespace stele::bench
