// What the front end of an open pool has asked for: a lock that is held beside pauses, and a call
// when the pool is closed.
//
// The work of readers in other processes takes the lock before it pauses: a pause that waits for a
// `with` holds up all other threads, also one that the `with` waits for.
#pragma once

#include <base/assert.h>

#include <atomic>
#include <functional>
#include <utility>

namespace stele::detail {

// A front end's lock. Its transactions hold it while their code may wait for other threads (a
// `with` of Python).
class front_end_lock {
 public:
  // Waits for the transaction of another thread. False, and not locked: the holder closes the pool,
  // and may wait for the calling thread.
  [[nodiscard]] virtual bool acquire() noexcept = 0;
  virtual void release() noexcept = 0;

 protected:
  ~front_end_lock() = default;
};

// Holds a front end's lock, unless there is none or it was refused.
class front_end_hold {
 public:
  explicit front_end_hold(front_end_lock* lock) noexcept : lock_(lock) {
    if (lock_ != nullptr && !lock_->acquire()) lock_ = nullptr;
  }
  front_end_hold(front_end_hold&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  ~front_end_hold() { release(); }
  void release() noexcept {
    if (auto* const held = std::exchange(lock_, nullptr)) held->release();
  }

 private:
  front_end_lock* lock_;
};

class front_end {
 public:
  // `l` outlives its use.
  void set_lock(front_end_lock* l) noexcept {
    STELE_ASSERT_ALWAYS(l != nullptr);  // it outlives its use, so it is never taken back
    lock_.store(l);
  }
  front_end_hold hold() noexcept { return front_end_hold(lock_.load()); }

  // Calls `call` once, when close() begins, while transactions may still begin.
  void before_close(std::function<void()> call) { before_close_ = std::move(call); }
  bool waits_for_close() const noexcept { return before_close_ != nullptr; }
  void call_before_close() { std::exchange(before_close_, nullptr)(); }  // if waits_for_close()

 private:
  std::atomic<front_end_lock*> lock_{nullptr};
  std::function<void()> before_close_;
};

}  // namespace stele::detail
