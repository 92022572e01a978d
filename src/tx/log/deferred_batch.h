// The deferred commits of one log. Any thread may make them durable; the owner of the log adds to
// them under the mutex.
#pragma once

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
  transaction* owner = nullptr;  // null: the batch is empty
};

// Holds the mutexes of all batches of a pool.
class all_batches_lock {
 public:
  explicit all_batches_lock(std::deque<deferred_batch>& batches) noexcept : batches_(batches) {
    for (deferred_batch& b : batches_) b.mutex.lock();
  }
  ~all_batches_lock() {
    for (deferred_batch& b : batches_) b.mutex.unlock();
  }
  all_batches_lock(const all_batches_lock&) = delete;
  all_batches_lock& operator=(const all_batches_lock&) = delete;

 private:
  std::deque<deferred_batch>& batches_;
};

}  // namespace stele::detail
