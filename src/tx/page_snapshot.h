// A snapshot of 4 KiB pages of the pool, taken while transactions go on. A thread that is about to
// store to a page that is not copied yet copies it first: copy on write, as in snapshots of block
// devices.
//
// A page is copied once, by the first thread that claims it. Invariant: a page is copied with the
// bytes that it had when include_pages() was called, while no transaction ran. Thread-safe except
// for include_pages().
#pragma once

#include <base/assert.h>
#include <stele/error.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace stele::detail {

class page_snapshot {
 public:
  static constexpr std::size_t page_size = 4096;

  // Of no pages.
  page_snapshot() = default;
  // As resize().
  explicit page_snapshot(std::uint64_t bytes) { resize(bytes); }
  virtual ~page_snapshot() = default;
  page_snapshot(const page_snapshot&) = delete;
  page_snapshot& operator=(const page_snapshot&) = delete;

  // Makes the snapshot one of the bytes [0, bytes) of a pool; it contains no page before
  // include_pages(). Precondition: no other thread knows the snapshot. Throws std::bad_alloc.
  void resize(std::uint64_t bytes) {
    const std::uint64_t pages = (bytes + page_size - 1) / page_size;
    state_ = std::make_unique<std::atomic<state>[]>(pages);
    pages_ = pages;
  }
  bool covers(std::uint64_t bytes) const noexcept { return bytes <= pages_ * page_size; }

  // Adds the pages of a range of whole pages to the snapshot. Precondition: no transaction runs.
  void include_pages(std::uint64_t offset, std::uint64_t bytes) noexcept {
    STELE_ASSERT(offset % page_size == 0 && covers(offset + bytes));
    for (std::uint64_t p = offset / page_size; p < (offset + bytes + page_size - 1) / page_size;
         ++p)
      state_[p].store(state::not_copied, std::memory_order_relaxed);
  }
  // On return the page of this pool offset may be stored to.
  void before_store(std::uint64_t offset) noexcept {
    const std::uint64_t page = offset / page_size;
    if (page >= pages_) return;  // the pool has grown since
    if (state_[page].load(std::memory_order_acquire) == state::copied) return;
    if (claim(page)) {
      copy_before_store(page * page_size);
      return mark_copied(page, 1);
    }
    wait_for(page);
  }

 protected:
  // Claims consecutive pages from `page` on that no thread has claimed, at most `most`, and returns
  // their number. The caller copies them and calls mark_copied(). 0: another thread claimed `page`,
  // and has copied it.
  std::uint64_t claim_run(std::uint64_t page, std::uint64_t most) noexcept {
    STELE_ASSERT(page < pages_ && most != 0);
    std::uint64_t n = 0;
    while (n < most && page + n < pages_ && claim(page + n)) ++n;
    if (n == 0) wait_for(page);
    STELE_ASSERT(n <= most && page + n <= pages_);
    return n;
  }
  void mark_copied(std::uint64_t page, std::uint64_t count) noexcept {
    STELE_ASSERT(page + count <= pages_);
    for (std::uint64_t p = page; p < page + count; ++p) {
      STELE_ASSERT(state_[p].load(std::memory_order_relaxed) == state::being_copied);
      state_[p].store(state::copied, std::memory_order_release);
    }
  }

 private:
  // copied: also of a page that the snapshot does not contain.
  enum class state : std::uint8_t { copied, not_copied, being_copied };

  virtual void copy_before_store(std::uint64_t offset) noexcept = 0;
  void wait_for(std::uint64_t page) const noexcept {
    while (state_[page].load(std::memory_order_acquire) != state::copied) std::this_thread::yield();
  }
  bool claim(std::uint64_t page) noexcept {
    STELE_ASSERT(page < pages_);
    state expected = state::not_copied;
    return state_[page].compare_exchange_strong(expected, state::being_copied,
                                                std::memory_order_acq_rel);
  }

  std::uint64_t pages_ = 0;
  std::unique_ptr<std::atomic<state>[]> state_;
};

// A snapshot of all of home, at a moment that a pause fixes (docs/protocol/long-reads.md, L1 and
// L2). The pool may grow before the pause, and grows in none.
class home_snapshot : public page_snapshot {
 public:
  // L1: makes the snapshot one of home of a pool of so many bytes. Precondition: no other thread
  // knows the snapshot. Errors: full, and std::bad_alloc.
  [[nodiscard]] virtual result<> keep_home(std::uint64_t bytes) = 0;
};

}  // namespace stele::detail
