// A readers-writer gate (base/asymmetric_gate.h). Each commit enters it with the number of its
// lane, before its record, and leaves it after its home stores. While the gate is closed, no commit
// is between the two. Callers exclude two closers from each other.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <media/cpu.h>

#include <vector>

namespace stele::detail {

class commit_gate {
 public:
  explicit commit_gate(std::size_t lanes) : lanes_(lanes) {}

  void enter(unsigned lane) noexcept {
    STELE_ASSERT(lane < lanes_.size() && !lanes_[lane].inside.made());
    for (;;) {
      lanes_[lane].inside.announce(true);
      if (!closed_.look()) [[likely]]
        return;
      leave(lane);
      while (closed_.look()) media::cpu::relax();
    }
  }
  void leave(unsigned lane) noexcept {
    STELE_ASSERT(lanes_[lane].inside.made());
    lanes_[lane].inside.withdraw();
  }

  void close() noexcept {
    STELE_ASSERT(!closed_.peek());
    closed_.close(true);
    for (const slot& l : lanes_) l.inside.await_withdrawal(media::cpu::relax);
  }
  void open() noexcept {
    STELE_ASSERT(closed_.peek());
    closed_.open();
  }

 private:
  struct alignas(64) slot {
    base::announcement<> inside;
  };
  std::vector<slot> lanes_;
  base::asymmetric_gate<> closed_;
};

}  // namespace stele::detail
