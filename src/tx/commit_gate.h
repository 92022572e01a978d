// A readers-writer gate. Each commit enters it with the number of its lane, before its record, and
// leaves it after its home stores. While the gate is closed, no commit is between the two.
//
// enter() costs a store and a load; close() pays for the order (base/epochs.h:
// asymmetric_fence_light, asymmetric_fence_heavy). The gate does not exclude two closers from each
// other; the callers do.
#pragma once

#include <base/epochs.h>
#include <media/cpu.h>

#include <vector>

namespace stele::detail {

class commit_gate {
 public:
  explicit commit_gate(std::size_t lanes) : lanes_(lanes) {}

  void enter(unsigned lane) noexcept {
    for (;;) {
      lanes_[lane].inside.store(true, std::memory_order_relaxed);
      base::asymmetric_fence_light();
      if (!closed_.load(std::memory_order_acquire)) [[likely]]
        return;
      leave(lane);
      while (closed_.load(std::memory_order_acquire)) media::cpu::relax();
    }
  }
  void leave(unsigned lane) noexcept {
    lanes_[lane].inside.store(false, std::memory_order_release);
  }

  void close() noexcept {
    closed_.store(true, std::memory_order_relaxed);
    base::asymmetric_fence_heavy();
    for (const slot& l : lanes_)
      while (l.inside.load(std::memory_order_acquire)) media::cpu::relax();
  }
  void open() noexcept { closed_.store(false, std::memory_order_release); }

 private:
  struct alignas(64) slot {
    std::atomic<bool> inside{false};
  };
  std::vector<slot> lanes_;
  std::atomic<bool> closed_{false};
};

}  // namespace stele::detail
