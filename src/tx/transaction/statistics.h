// What the transactions of one log have done.
//
// Only the log's owner adds; other threads may read older values. Plain loads and stores, because a
// locked instruction in each commit would wait for its fence.
#pragma once

#include <base/assert.h>
#include <stele/pool.h>

#include <atomic>
#include <cstdint>

namespace stele::detail {

class statistics {
 public:
  // A commit has returned: one without a record, or the commit `txid`.
  void count_commit() noexcept { add(commits_, 1); }
  void count_commit(std::uint64_t txid) noexcept {
    STELE_ASSERT(txid > newest_.load(std::memory_order_relaxed));
    add(commits_, 1);
    newest_.store(txid, std::memory_order_release);
  }
  void count_read() noexcept { add(reads_, 1); }
  void count_abort() noexcept { add(aborts_, 1); }
  void count_stored_in_place(std::uint64_t bytes) noexcept { add(stored_in_place_, bytes); }

  // What another counted; the caller excludes other calls.
  void add(const statistics& other) noexcept {
    add(commits_, other.commits_.load(std::memory_order_relaxed));
    add(aborts_, other.aborts_.load(std::memory_order_relaxed));
    add(reads_, other.reads_.load(std::memory_order_relaxed));
  }

  // TxID of the newest commit that has returned; 0: none has.
  std::uint64_t newest() const noexcept { return newest_.load(std::memory_order_acquire); }
  void add_to(pool_counters& c) const noexcept {
    c.commits += commits_.load(std::memory_order_relaxed);
    c.aborts += aborts_.load(std::memory_order_relaxed);
    c.reads += reads_.load(std::memory_order_relaxed);
    c.stored_bytes += stored_in_place_.load(std::memory_order_relaxed);
  }

 private:
  using counter = std::atomic<std::uint64_t>;
  static void add(counter& c, std::uint64_t n) noexcept {
    c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  counter commits_{0}, aborts_{0}, reads_{0}, newest_{0}, stored_in_place_{0};
};

}  // namespace stele::detail
