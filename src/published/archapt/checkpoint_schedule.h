// When archapt makes a checkpoint (docs/protocol/archapt.md, C1 to C5): before anything is covered,
// a recent one must exist, because a covered line can be lost, and then everything since the
// checkpoint. Times are TxIDs. Only is_due() may be called beside another thread.
#pragma once

#include <base/assert.h>
#include <published/mutant.h>

#include <atomic>
#include <cstdint>

namespace stele::detail {

class checkpoint_schedule {
 public:
  // A checkpoint is recent for so many commits. 0: none is ever made.
  void begin(std::uint64_t commits) noexcept {
    STELE_ASSERT_ALWAYS(recent_until_ == 0);  // before the first checkpoint
    commits_ = commits;
  }

  // Whether nothing may be covered before another checkpoint.
  bool is_missing(std::uint64_t now) const noexcept {
    return commits_ != 0 && now >= recent_until_;
  }
  // There is a checkpoint of the state after commit `at`, and nothing is covered.
  void made(std::uint64_t at) noexcept {
    // archapt.md, C5: TxIDs only rise, and a pool without an interval has no copy.
    STELE_ASSERT(commits_ != 0 && at + commits_ >= recent_until_);
    recent_until_ = at + commits_;
    due_.store(never, std::memory_order_relaxed);
  }
  // Something is covered: the commit at which the checkpoint is not recent any more makes the next.
  void covers() noexcept {
    // archapt.md, C5: a checkpoint exists before anything is covered.
    STELE_ASSERT(base::holds(commits_ == 0 || recent_until_ != 0));
    if (commits_ != 0) due_.store(recent_until_, std::memory_order_relaxed);
  }
  bool is_due(std::uint64_t now) const noexcept {
    return now >= due_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::uint64_t commits_ = 0, recent_until_ = 0;
  std::atomic<std::uint64_t> due_{never};
};

}  // namespace stele::detail
