// Estimates which parts of home a processor's cache still holds: a queue of the columns used last,
// as long as the cache.
//
// Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory"
// (2019), sections III-B and IV: an LRU queue on a circular buffer and a hash table beside it.
// Departures: the queue holds columns of seven lines (format/parity_block.h), whatever objects lie
// in them. Only one thread uses it, the one that collects what other threads have noted, so the
// table needs no atomics. Each use appends to the buffer; an entry counts only if it is its
// column's newest.
#pragma once

#include <base/assert.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace stele::detail {

class column_lru {
 public:
  // `columns`: as many as the cache has room for; at least one is kept.
  explicit column_lru(std::uint64_t columns)
      : capacity_(std::max<std::uint64_t>(columns, 1)),
        slots_(std::bit_ceil(capacity_ * 4)),
        queue_(std::bit_ceil(capacity_ * 4)) {
    // The masks of both, and a free slot for every search to end at.
    STELE_ASSERT_ALWAYS(std::has_single_bit(slots_.size()) && queue_.size() == slots_.size() &&
                        capacity_ < slots_.size());
  }

  std::uint64_t capacity() const noexcept { return capacity_; }
  std::uint64_t size() const noexcept { return size_; }
  // Whether the column is among those used last.
  bool contains(std::uint64_t column) const noexcept { return slots_[find(column)].use != 0; }

  // The column was loaded from or stored to.
  void touch(std::uint64_t column) {
    if (tail_ != head_ && queue_[(tail_ - 1) & (queue_.size() - 1)].column == column)
      return;  // it is the newest already
    if (tail_ - head_ == queue_.size()) compact();
    STELE_ASSERT(tail_ - head_ < queue_.size());  // most entries were not their columns' newest
    slot& s = slots_[find(column)];
    size_ += s.use == 0;
    s = {column, ++uses_};
    queue_[tail_++ & (queue_.size() - 1)] = s;
    while (size_ > capacity_) evict_oldest();
    STELE_ASSERT(contains(column));  // the newest is never evicted
  }

 private:
  struct slot {
    std::uint64_t column = 0;
    std::uint64_t use = 0;  // number of its newest use; 0: not held
  };

  // Where the column is, or the free slot for it.
  std::size_t find(std::uint64_t column) const noexcept {
    std::size_t at = bucket_of(column);
    while (slots_[at].use != 0 && slots_[at].column != column) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::size_t bucket_of(std::uint64_t column) const noexcept {
    return (column * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
  }

  void evict_oldest() noexcept {
    STELE_ASSERT(head_ != tail_);  // every column held has its newest use in the queue
    const slot oldest = queue_[head_++ & (queue_.size() - 1)];
    const std::size_t at = find(oldest.column);
    if (slots_[at].use != oldest.use) return;  // was used again
    erase(at);
    STELE_ASSERT(size_ != 0);
    --size_;
  }
  // Linear probing without tombstones: later slots move up where they may.
  void erase(std::size_t at) noexcept {
    STELE_ASSERT(slots_[at].use != 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t next = (at + 1) & mask; slots_[next].use != 0; next = (next + 1) & mask) {
      const std::size_t bucket = bucket_of(slots_[next].column);
      if (((next - bucket) & mask) < ((next - at) & mask)) continue;
      slots_[at] = slots_[next];
      at = next;
    }
    slots_[at].use = 0;
  }
  // Keeps only the newest entry of each column.
  void compact() noexcept {
    std::uint64_t kept = head_;
    for (std::uint64_t i = head_; i != tail_; ++i) {
      const slot& entry = queue_[i & (queue_.size() - 1)];
      if (slots_[find(entry.column)].use == entry.use) queue_[kept++ & (queue_.size() - 1)] = entry;
    }
    tail_ = kept;
    STELE_ASSERT(tail_ - head_ == size_);
    STELE_ASSERT_WHOLE(is_in_order());
  }
  // Whether the queue has the newest use of every column, oldest first, and the table finds each.
  // After compact(); only for assertions.
  [[maybe_unused]] bool is_in_order() const noexcept {
    std::uint64_t last = 0;
    for (std::uint64_t i = head_; i != tail_; ++i) {
      const slot& entry = queue_[i & (queue_.size() - 1)];
      if (entry.use <= last || slots_[find(entry.column)].use != entry.use) return false;
      last = entry.use;
    }
    return true;
  }

  std::uint64_t capacity_, size_ = 0, uses_ = 0;
  std::vector<slot> slots_;  // open addressing
  std::vector<slot> queue_;  // circular; [head_, tail_)
  std::uint64_t head_ = 0, tail_ = 0;
};

}  // namespace stele::detail
