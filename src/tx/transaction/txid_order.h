// Whether a commit's TxID was drawn in ordered mode, and what follows from that.
//
// In ordered mode TxIDs are drawn under one mutex, so that a record can name the ordered commit
// before it. An ordered commit keeps the mutex until it is in its deferred batch, or is durable: no
// record names it before.
#pragma once

#include <base/assert.h>

#include <cstdint>
#include <mutex>

namespace stele::detail {

class txid_order {
 public:
  bool in_order() const noexcept { return in_order_; }
  // If in_order(): the TxID of the ordered commit before; 0: there is none.
  std::uint64_t previous() const noexcept { return previous_; }

  void set_in_order(bool yes) noexcept { in_order_ = yes; }
  void lock(std::mutex& txids) {
    STELE_ASSERT(!lock_.owns_lock());
    lock_ = std::unique_lock(txids);
  }
  void set_previous(std::uint64_t txid) noexcept {
    STELE_ASSERT(lock_.owns_lock() && txid >= previous_);
    previous_ = txid;
  }
  // Later commits may draw their TxIDs. Nothing happens if the mutex is not held.
  void release() noexcept {
    if (lock_.owns_lock()) lock_.unlock();
  }

 private:
  bool in_order_ = false;
  std::uint64_t previous_ = 0;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace stele::detail
