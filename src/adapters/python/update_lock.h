// The lock of a pool's updates: held by the thread that runs one, or that is inside a `with`.
//
// Threads wait for it without the GIL. The holder may take it again. The library's service for
// readers in other processes takes it too (tx/runtime.h), before threads that come later, since a
// loop of updates would delay it for long.
#pragma once

#include <base/assert.h>

#include <tx/runtime.h>

#include <atomic>
#include <chrono>
#include <mutex>

namespace stele::python {

class update_lock final : public detail::front_end_lock {
 public:
  using seconds = std::chrono::duration<double>;

  // As those of std::timed_mutex.
  bool try_lock() { return library_waits_.load() == 0 && mutex_.try_lock(); }
  bool try_lock_for(seconds limit);
  void unlock() noexcept { mutex_.unlock(); }

  // Called by the holder, which closes the pool: the library stops waiting for the lock.
  void begin_close() noexcept {
    STELE_ASSERT_ALWAYS(!closes_.load());
    closes_ = true;
  }
  void end_close() noexcept {
    STELE_ASSERT_ALWAYS(closes_.load());
    closes_ = false;
  }

 private:
  bool acquire() noexcept override;
  void release() noexcept override { mutex_.unlock(); }

  std::recursive_timed_mutex mutex_;
  std::atomic<unsigned> library_waits_{0};
  std::atomic<bool> closes_{false};
};

}  // namespace stele::python
