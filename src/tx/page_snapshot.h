// The 4 KiB pages of home as they were at one moment, taken while transactions go on: who is about
// to store to a page that has not been copied has it copied first. Copy on write, as in snapshots
// of block devices.
//
// A page is copied once, by the one who comes first. Invariant: what copy() is shown are the page's
// bytes at the moment that include_pages() was called, when no transaction ran. Thread-safe but for
// include_pages().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace stele::detail {

class page_snapshot {
 public:
  static constexpr std::size_t page_size = 4096;

  // Of the bytes [0, bytes) of a pool. No page is expected to be copied yet.
  explicit page_snapshot(std::uint64_t bytes)
      : pages_((bytes + page_size - 1) / page_size),
        state_(std::make_unique<std::atomic<state>[]>(pages_)) {}
  virtual ~page_snapshot() = default;
  page_snapshot(const page_snapshot&) = delete;
  page_snapshot& operator=(const page_snapshot&) = delete;

  // The pages of a range of whole pages belong to it. While no transaction runs.
  void include_pages(std::uint64_t offset, std::uint64_t bytes) noexcept {
    for (std::uint64_t p = offset / page_size; p < (offset + bytes + page_size - 1) / page_size;
         ++p)
      state_[p].store(state::not_copied, std::memory_order_relaxed);
  }
  // The page of this pool offset may be stored to when it returns.
  void before_store(std::uint64_t offset) noexcept {
    const std::uint64_t page = offset / page_size;
    if (state_[page].load(std::memory_order_acquire) == state::copied) return;
    if (claim(page)) {
      copy_before_store(page * page_size);
      return mark_copied(page, 1);
    }
    wait_for(page);
  }

 protected:
  // The next pages from `page` on that nobody has copied, at most `most`: the caller's to copy, and
  // to call done() on. 0: another had the first, and has copied it.
  std::uint64_t claim_run(std::uint64_t page, std::uint64_t most) noexcept {
    std::uint64_t n = 0;
    while (n < most && page + n < pages_ && claim(page + n)) ++n;
    if (n == 0) wait_for(page);
    return n;
  }
  void mark_copied(std::uint64_t page, std::uint64_t count) noexcept {
    for (std::uint64_t p = page; p < page + count; ++p)
      state_[p].store(state::copied, std::memory_order_release);
  }

 private:
  // Not of the snapshot, or in it already: copied.
  enum class state : std::uint8_t { copied, not_copied, being_copied };

  virtual void copy_before_store(std::uint64_t offset) noexcept = 0;
  void wait_for(std::uint64_t page) const noexcept {
    while (state_[page].load(std::memory_order_acquire) != state::copied) std::this_thread::yield();
  }
  bool claim(std::uint64_t page) noexcept {
    state expected = state::not_copied;
    return state_[page].compare_exchange_strong(expected, state::being_copied,
                                                std::memory_order_acq_rel);
  }

  std::uint64_t pages_;
  std::unique_ptr<std::atomic<state>[]> state_;
};

}  // namespace stele::detail
