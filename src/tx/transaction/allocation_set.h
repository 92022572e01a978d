// What a transaction has allocated and freed, and the free blocks that its log keeps in reserve.
//
// The states of blocks are stores of the transaction, so they commit and roll back with it; this is
// the volatile side. A block or run that was taken is reserved until commit() or rollback(); one
// that was freed is not given out before the commit that freed it. Used by the log's owner only.
#pragma once

#include <base/assert.h>
#include <pool/heap.h>

namespace stele::detail {

class allocation_set {
 public:
  explicit allocation_set(storage::heap& heap) noexcept : heap_(heap) {}

  // As the functions of heap.
  [[nodiscard]] result<std::uint64_t> allocate(storage::heap::writer& w, std::size_t size,
                                               std::size_t alignment) {
    used_ = true;
    return heap_.allocate(cache_, changes_, w, size, alignment);
  }
  [[nodiscard]] result<> deallocate(storage::heap::writer& w, std::uint64_t offset) {
    used_ = true;
    return heap_.deallocate(cache_, changes_, w, offset);
  }
  std::optional<storage::heap::block_place> used_block_of(storage::heap::writer& w,
                                                          std::uint64_t offset) const {
    return heap_.used_block_of(w, changes_, offset);
  }
  std::size_t reclaim(storage::heap::writer& w, std::size_t max_slabs) {
    used_ = true;
    return heap_.reclaim(cache_, changes_, w, max_slabs);
  }

  // Since the transaction began; commit() and rollback() empty it.
  const storage::heap::changes& changes() const noexcept { return changes_; }
  bool has_freed() const noexcept { return used_ && !changes_.freed.empty(); }
  void commit() noexcept {
    STELE_ASSERT(used_ || changes_.empty());
    if (!used_) return;
    used_ = false;
    heap_.commit(cache_, changes_);
    STELE_ASSERT(changes_.empty());
  }
  void rollback() noexcept {
    STELE_ASSERT(used_ || changes_.empty());
    heap_.rollback(cache_, changes_);
    STELE_ASSERT(changes_.empty());
  }
  // Moves the changes to `later`, which has room for them. They stay reserved until
  // commit(later).
  void defer(storage::heap::changes& later) noexcept {
    STELE_ASSERT(has_room(later.allocated, changes_.allocated) &&
                 has_room(later.freed, changes_.freed));
    STELE_ASSERT(has_room(later.runs_allocated, changes_.runs_allocated) &&
                 has_room(later.runs_freed, changes_.runs_freed));
    later.append(changes_);
    STELE_ASSERT(changes_.empty());
  }
  void commit(storage::heap::changes& deferred) noexcept {
    heap_.commit(cache_, deferred);
    STELE_ASSERT(deferred.empty());
  }

  // Gives the free blocks to the other threads. No transaction runs on this log.
  void return_cached_blocks() noexcept {
    STELE_ASSERT(changes_.empty());
    heap_.return_cached_blocks(cache_);
  }

 private:
  // For assertions: `more` can be appended without memory.
  template <class T>
  [[maybe_unused]] static bool has_room(const std::vector<T>& v,
                                        const std::vector<T>& more) noexcept {
    return v.capacity() - v.size() >= more.size();
  }

  storage::heap& heap_;
  storage::heap::changes changes_;
  storage::heap::thread_cache cache_;
  bool used_ = false;  // changes_ may have something; else commit() need not look
};

}  // namespace stele::detail
