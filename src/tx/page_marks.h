// Which 4 KiB pages of home have been stored to since somebody looked: what a backup copies again.
//
// A page is marked after it has been stored to, by the thread that did; who looks takes the mark before it copies. So a copy that a store
// met half-way has its mark still, or again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace stele::detail {

class page_marks {
 public:
  static constexpr std::size_t page_size = 4096;

  explicit page_marks(std::uint64_t bytes) : count_((bytes + page_size - 1) / page_size), marked_(std::make_unique<std::atomic<bool>[]>(count_)) {}

  // The page of a pool offset below the bytes given.
  void mark(std::uint64_t offset) noexcept {
    auto& page = marked_[offset / page_size];
    if (!page.load(std::memory_order_relaxed)) page.store(true, std::memory_order_release);
  }
  bool take(std::uint64_t page) noexcept { return marked_[page].load(std::memory_order_relaxed) && marked_[page].exchange(false, std::memory_order_acq_rel); }
  std::uint64_t pages() const noexcept { return count_; }

 private:
  std::uint64_t count_;
  std::unique_ptr<std::atomic<bool>[]> marked_;
};

}  // namespace stele::detail
