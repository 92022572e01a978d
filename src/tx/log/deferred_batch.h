// The deferred commits of one log. Any thread may make them durable; the owner of the log adds to
// them under the mutex.
#pragma once

#include <base/assert.h>

#include <cstdint>
#include <deque>
#include <mutex>

namespace stele::detail {

class transaction;

// Records [from, to) of the log's ring, unless the log is shared.
struct alignas(64) deferred_batch {
  std::mutex mutex;
  std::uint64_t from = 0, to = 0;
  std::uint64_t commits = 0;
  std::uint64_t newest = 0;           // TxID of the last commit, also once the batch is empty
  std::uint64_t flushed_commits = 0;  // commits when the running flush began
  transaction* owner = nullptr;       // null: the batch is empty
};

// Holds the mutexes of all batches of a pool, but between unlock() and lock().
class all_batches_lock {
 public:
  explicit all_batches_lock(std::deque<deferred_batch>& batches) noexcept : batches_(batches) {
    lock();
  }
  ~all_batches_lock() { unlock(); }
  all_batches_lock(const all_batches_lock&) = delete;
  all_batches_lock& operator=(const all_batches_lock&) = delete;

  void lock() noexcept {
    STELE_ASSERT(!locked_);
    for (deferred_batch& b : batches_) b.mutex.lock();
    locked_ = true;
  }
  void unlock() noexcept {
    if (!locked_) return;
    for (deferred_batch& b : batches_) b.mutex.unlock();
    locked_ = false;
  }

 private:
  std::deque<deferred_batch>& batches_;
  bool locked_ = false;
};

}  // namespace stele::detail
