// Stores in place, and the old words that undo them. For a mechanism without crash protection and
// with one writer, where a write set would only cost time.
//
// Between begin() and end() stores of one word go straight home, in stele/detail/access.h: the
// access record of this thread has the next free entry. Every store of the transaction goes home at
// once, so a load is a plain load. The buffer keeps its memory from one transaction to the next.
#pragma once

#include <base/assert.h>
#include <stele/detail/access.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace stele::detail {

class in_place_undo {
 public:
  // For stores to the first `size` bytes of the pool.
  void begin(access& a, std::size_t size) noexcept {
    STELE_ASSERT(size != 0 && a.pool_base % 8 == 0);
    a.load_size = 0;
    a.in_place_size = size;
    a.undo_next = entries_.data();
    a.undo_end = entries_.data() + entries_.size();
  }
  static void end(access& a) noexcept { a.in_place_size = 0; }
  bool empty(const access& a) const noexcept {
    STELE_ASSERT(has(a));
    return a.undo_next == entries_.data();
  }

  // Stores within one word. May throw std::bad_alloc; home is unchanged then.
  void store(access& a, std::uint64_t offset, const void* bytes, std::size_t size);
  // Makes room for more old words.
  void grow(access& a);
  // Restores the old words, newest first.
  void undo(const access& a) const noexcept;
  std::uint64_t stored_bytes(const access& a) const noexcept;

 private:
  // For assertions: begin() has been called with this record.
  [[maybe_unused]] bool has(const access& a) const noexcept {
    return a.undo_next >= entries_.data() && a.undo_next <= a.undo_end &&
           a.undo_end == entries_.data() + entries_.size();
  }

  std::vector<undo_entry> entries_;
};

inline void in_place_undo::store(access& a, std::uint64_t offset, const void* bytes,
                                 std::size_t size) {
  STELE_ASSERT(size != 0 && (offset & 7) + size <= 8 && offset + size <= a.in_place_size);
  if (a.undo_next == a.undo_end) [[unlikely]]
    grow(a);
  const std::uintptr_t word_at = a.pool_base + (offset & ~std::uint64_t{7});
  *a.undo_next++ = {word_at | size << 56, *reinterpret_cast<const std::uint64_t*>(word_at)};
  std::memcpy(reinterpret_cast<void*>(a.pool_base + offset), bytes, size);
}

}  // namespace stele::detail
