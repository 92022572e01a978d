// The pauses of an open pool, and what takes turns with them.
//
// A pause takes every log from its owner and waits for the transactions that run; a thread that
// begins meanwhile waits in thread_registry::acquire(). There is one at a time. Nothing here
// allocates memory: who pauses a pool may be ending a long read, or be a destructor.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <tx/session/thread_context.h>
#include <tx/session/thread_registry.h>

#include <mutex>
#include <optional>
#include <utility>

namespace stele::detail {

// While it exists, no transaction runs or begins, except one thread's if that is named.
class pool_pause {
 public:
  pool_pause(pool_pause&& other) noexcept = default;  // which ends nothing any more
  ~pool_pause() {
    if (one_.owns_lock()) threads_.resume();
  }

 private:
  friend class pauses;
  pool_pause(thread_registry& threads, std::unique_lock<std::mutex> one,
             const thread_context* except) noexcept
      : threads_(threads), one_(std::move(one)) {
    threads_.stop(except);
    base::asymmetric_fence_heavy();  // once for all logs
    threads_.await_stopped();
  }

  thread_registry& threads_;
  std::unique_lock<std::mutex> one_;
};

class pauses {
 public:
  // Waits until no other thread pauses the pool.
  std::unique_lock<std::mutex> one() noexcept { return std::unique_lock(mutex_); }
  // Waits for running transactions; the calling thread must not be in one, unless it is `except`.
  [[nodiscard]] pool_pause begin(thread_registry& threads, std::unique_lock<std::mutex> one,
                                 const thread_context* except) noexcept {
    STELE_ASSERT(one.owns_lock() && one.mutex() == &mutex_);
    return pool_pause(threads, std::move(one), except);
  }

  // v's next attempt meets no conflict, because no other transaction runs: pause(one) begins a
  // pause that spares v. Does nothing while another thread runs alone, or waits for a pause and so
  // for v.
  template <class Pause>
  void run_alone(thread_context& v, Pause&& pause) noexcept {
    if (!alone_mutex_.try_lock()) return;
    STELE_ASSERT(!alone_);
    // A pause that waits holds this mutex until v's transaction has ended.
    if (std::unique_lock one(mutex_, std::try_to_lock); one.owns_lock()) {
      alone_.emplace(pause(std::move(one)));
      v.runs_alone = true;
    } else {
      alone_mutex_.unlock();
    }
  }
  void end_running_alone(thread_context& v) noexcept {
    STELE_ASSERT(v.runs_alone && alone_);
    v.runs_alone = false;
    alone_.reset();
    alone_mutex_.unlock();
  }

  // Held by long work on the whole pool: backup, growth, check. Taken before one().
  std::mutex& maintenance() noexcept { return maintenance_mutex_; }

 private:
  std::mutex maintenance_mutex_;
  std::mutex mutex_;                 // of the one pause
  std::mutex alone_mutex_;           // held by the thread that runs alone
  std::optional<pool_pause> alone_;  // under alone_mutex_
};

}  // namespace stele::detail
