// Epoch-based reclamation after Fraser, "Practical Lock-Freedom" (2004), section 5.2.3: readers
// find memory without locks, and the memory is reused only when no reader can still know it.
//
// A reader pins the current epoch while it reads, and unpins afterwards. A thread that retires
// memory (makes it unreachable) advances the epoch. It may reuse the memory once no reader is
// pinned at an older epoch. A pin is an announcement as in asymmetric_gate.h. There is no gate:
// what readers see is the memory itself, which is out of reach before the heavy fence.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace stele::base {

class epochs {
 public:
  explicit epochs(unsigned readers)
      : pins_(std::make_unique<pin_slot[]>(readers)), readers_(readers) {}

  void pin(unsigned reader) noexcept {
    STELE_ASSERT(reader < readers_);
    pins_[reader].epoch.announce(now_.load(std::memory_order_relaxed));
  }
  void unpin(unsigned reader) noexcept {
    STELE_ASSERT(reader < readers_);
    pins_[reader].epoch.withdraw(unpinned);
  }

  std::uint64_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
  // Returns the epoch before the call. Memory that became unreachable before the call may be reused
  // when oldest_pinned() is above that epoch.
  std::uint64_t advance() noexcept { return now_.fetch_add(1, std::memory_order_acq_rel); }
  // The oldest epoch at which a reader is pinned; the current epoch if there is none.
  std::uint64_t oldest_pinned() const noexcept {
    asymmetric_fence_heavy();
    std::uint64_t least = now_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < readers_; ++i) least = std::min(least, pins_[i].epoch.seen());
    STELE_ASSERT(least != 0 && least != unpinned);  // the first epoch is 1, and they only grow
    return least;
  }

 private:
  static constexpr std::uint64_t unpinned = ~std::uint64_t{0};
  struct alignas(64) pin_slot {
    announcement<std::uint64_t> epoch{unpinned};
  };
  static_assert(sizeof(pin_slot) == 64, "readers pin without sharing a line");
  std::unique_ptr<pin_slot[]> pins_;
  unsigned readers_;
  alignas(64) std::atomic<std::uint64_t> now_{1};
};

}  // namespace stele::base
