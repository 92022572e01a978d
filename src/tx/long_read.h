// A read of the pool as it was at one moment, which writers do not break. Page:
// docs/protocol/long-reads.md, steps L1 to L5.
//
// Of a policy with locks (stm) and a home in place. A writer keeps a page before it stores to it
// (page_snapshot.h); the reader takes a kept page, else home, and then looks again.
#pragma once

#include <tx/page_snapshot.h>
#include <tx/transaction.h>
#include <tx/transaction/statistics.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace stele::detail {

class long_read final : public page_snapshot {
 public:
  // Throws std::bad_alloc.
  explicit long_read(runtime& r);
  ~long_read() override;

  // The transaction that reads. It belongs to no log.
  transaction& reader() noexcept { return reader_; }
  const statistics& counts() const noexcept { return counts_; }

  // The word, or bytes of one line, as they were at the moment. Called by the reader's thread.
  // Throw std::bad_alloc if there was no memory to keep the page.
  std::uint64_t word(std::uint64_t offset) const;
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) const;

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

  const std::byte* const home_;
  const std::uint64_t bytes_;
  // By page; null: not kept. Zeroed memory that takes no room until it is stored to.
  std::unique_ptr<std::atomic<kept_page*>[], by_free> kept_;
  std::atomic<kept_page*> all_{nullptr};
  std::atomic<bool> lost_{false};  // there was no memory to keep a page
  statistics counts_;
  transaction reader_;
};

}  // namespace stele::detail
