// Volatile locks for contenders without isolation of their own: a transaction holds the stripes of all its keys, taken in
// ascending order so that threads cannot wait in a circle. Keys of one bucket share a stripe: a stripe is the low bits of
// the key's hash, and there are at most as many stripes as buckets. No stripes: holding them is free and protects nothing.
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
  // A power of two, or none.
  explicit stripes(std::size_t count) : count_(count), locks_(std::make_unique<lock[]>(count)) {}

  class held {
   public:
    held(stripes& s, std::span<const workloads::operation> operations) : stripes_(s) {
      if (s.count_ == 0) return;
      for (const auto& op : operations) {
        wanted_.push_back(s.stripe_of(op.a));
        if (op.what == workloads::operation::kind::swap) wanted_.push_back(s.stripe_of(op.b));
      }
      std::ranges::sort(wanted_);
      const auto repeated = std::ranges::unique(wanted_);
      wanted_.erase(repeated.begin(), repeated.end());
      for (const std::size_t i : wanted_) s.locks_[i].take();
    }
    ~held() {
      for (const std::size_t i : wanted_) stripes_.locks_[i].taken.store(false, std::memory_order_release);
      wanted_.clear();
    }
    held(const held&) = delete;
    held& operator=(const held&) = delete;

   private:
    stripes& stripes_;
    static inline thread_local std::vector<std::size_t> wanted_;  // kept, so that a transaction allocates nothing
  };

 private:
  struct alignas(64) lock {
    std::atomic<bool> taken{false};
    void take() noexcept {
      for (unsigned tries = 0; taken.exchange(true, std::memory_order_acquire); ++tries)
        while (taken.load(std::memory_order_relaxed))
          if (++tries > 1000) std::this_thread::yield();
    }
  };

  std::size_t stripe_of(std::uint64_t key) const noexcept { return detail::hash_word(key) & (count_ - 1); }

  std::size_t count_;
  std::unique_ptr<lock[]> locks_;
};

}  // namespace stele::bench
