// A read of the pool as it was at one moment, which writers do not break. Page:
// docs/protocol/long-reads.md, steps L1 to L5.
//
// Of a policy with locks (stm) and a home in place. A writer keeps a page before it stores to it
// (page_snapshot.h); the reader takes a kept page, else home, and then looks again.
#pragma once

#include <base/assert.h>
#include <tx/moment.h>
#include <tx/page_snapshot.h>
#include <tx/transaction.h>
#include <tx/transaction/statistics.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

namespace stele::detail {

// Whether this thread's read, between two attempts, has lost enough to go on as a long read.
bool lost_enough_for_long_read() noexcept;

class long_read final : public home_snapshot, public moment {
 public:
  // Of no pages before keep_home().
  explicit long_read(runtime& r);
  ~long_read() override;

  // The transaction that reads. It belongs to no log.
  transaction& reader() noexcept { return reader_; }
  // `tx`: of the thread's context. Between the calls the thread reads by this transaction, not by
  // that of its own log, which may go to another thread meanwhile: its next begin looks.
  void take_over(transaction*& tx) noexcept {
    STELE_ASSERT(own_ == nullptr && tx != &reader_);
    own_ = std::exchange(tx, &reader_);
  }
  void give_back(transaction*& tx) noexcept {
    STELE_ASSERT(tx == &reader_);
    tx = std::exchange(own_, nullptr);
  }
  // Of a pool_snapshot: the pool, and the lock of the one thread that reads.
  runtime& pool() const noexcept { return pool_; }
  std::mutex& in_use() noexcept { return in_use_; }
  const statistics& counts() const noexcept { return counts_; }

  result<> keep_home(std::uint64_t bytes) override;
  // There is no memory to keep pages: each load throws std::bad_alloc.
  void give_up() noexcept { lost_.store(true, std::memory_order_release); }

  std::uint64_t word(std::uint64_t offset) const override;
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) const override;

 private:
  struct kept_page {
    alignas(64) std::byte bytes[page_size];
    kept_page* next;
  };
  struct by_free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  void copy_before_store(std::uint64_t offset) noexcept override;
  // L4. Calls take(address) with where the bytes at an offset are; twice, if a writer comes.
  template <class Take>
  void at_moment(std::uint64_t offset, Take&& take) const;

  runtime& pool_;
  std::mutex in_use_;
  const std::byte* const home_;
  std::uint64_t bytes_ = 0;
  // By page; null: not kept. Zeroed memory that takes no room until it is stored to.
  std::unique_ptr<std::atomic<kept_page*>[], by_free> kept_;
  std::atomic<kept_page*> all_{nullptr};
  std::atomic<bool> lost_{false};  // there was no memory to keep a page
  statistics counts_;
  transaction reader_;
  transaction* own_ = nullptr;
};

}  // namespace stele::detail
