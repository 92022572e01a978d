// Policy single_writer: the lock of the one thread that updates, and the readers that it keeps out
// while home changes.
//
// A reader announces itself (thread_context::reading), then looks whether readers are blocked; the
// writer blocks them, then looks at the announcements. Both pay a full fence.
#pragma once

#include <base/assert.h>
#include <media/cpu.h>
#include <tx/session/bias.h>
#include <tx/session/thread_context.h>

#include <atomic>
#include <mutex>

namespace stele::detail {

class writer_lock {
 public:
  // before_waiting(): called when another thread holds the lock.
  template <class BeforeWaiting>
  void lock(thread_context& v, BeforeWaiting&& before_waiting) {
    if (!mutex_.try_lock()) {
      before_waiting();
      mutex_.lock();
    }
    STELE_ASSERT(!v.holds_writer);
    v.holds_writer = true;
    streak_ = last_ == &v ? streak_ + 1 : 0;
    last_ = &v;
  }
  // grant(): called, still under the lock, when v has been the only writer for long.
  template <class Grant>
  void unlock(thread_context& v, Grant&& grant) noexcept {
    STELE_ASSERT(v.holds_writer && last_ == &v);
    v.holds_writer = false;
    if (streak_ >= bias::threshold) [[unlikely]] {
      streak_ = 0;
      grant();
    }
    mutex_.unlock();
  }

  // On return v reads, and block_readers() waits for it.
  void begin_read(thread_context& v) noexcept {
    STELE_ASSERT(!v.holds_writer);
    STELE_ASSERT(!v.reading.load(std::memory_order_relaxed));
    for (;;) {
      v.reading.store(true, std::memory_order_seq_cst);
      if (!readers_blocked_.load(std::memory_order_seq_cst)) return;
      v.reading.store(false, std::memory_order_release);
      while (readers_blocked_.load(std::memory_order_acquire)) media::cpu::relax();
    }
  }
  // From the return on no thread begins to read; the caller waits for those that do.
  void block_readers() noexcept { readers_blocked_.store(true, std::memory_order_seq_cst); }
  void unblock_readers() noexcept { readers_blocked_.store(false, std::memory_order_release); }

 private:
  std::mutex mutex_;
  const thread_context* last_ = nullptr;  // under mutex_
  unsigned streak_ = 0;                   // under mutex_: updates in a row of last_
  std::atomic<bool> readers_blocked_{false};
};

}  // namespace stele::detail
