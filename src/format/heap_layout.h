// Heap metadata on media. docs/format/heap.md is the page for readers.
//
// The heap is an array of chunks. The chunk table has one guarded word for each chunk: free (0), a
// slab of a size class, the head of an extent with its length, or the tail of an extent; in a pool
// that has grown, also the head of the run that holds the table itself. A slab begins with one
// state byte for each block, padded to a line; the blocks follow. Only the transaction that
// reserved a block or chunk changes its state, so neighbouring bytes need no common lock, and a
// redo log may replay single bytes.
#pragma once

#include <format/guarded.h>

#include <cstddef>
#include <cstdint>

namespace stele::format {

enum class chunk_kind : std::uint8_t { free = 0, small = 1, extent = 2, tail = 3, table = 4 };
constexpr bool is_run_head(chunk_kind k) noexcept {
  return k == chunk_kind::extent || k == chunk_kind::table;
}

struct chunk_descriptor {
  chunk_kind kind = chunk_kind::free;
  std::uint8_t size_class = 0;  // of a slab
  std::uint32_t length = 0;     // extent, table: number of chunks, including the head

  constexpr std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(kind) | std::uint64_t{size_class} << 8 |
           std::uint64_t{length} << 16;
  }
  // A free chunk in a pool with magic words (pool_layout.h): not 0, so that a zeroed table is
  // noticed.
  static constexpr chunk_descriptor nonzero_free() noexcept { return {chunk_kind::free, 0xF5, 0}; }

  static constexpr chunk_descriptor unpack(std::uint64_t value) noexcept {
    return {static_cast<chunk_kind>(value & 0xFF), static_cast<std::uint8_t>(value >> 8),
            static_cast<std::uint32_t>(value >> 16)};
  }
};

// These values differ in many bits: a flipped bit gives neither of them.
inline constexpr std::uint8_t block_free = 0x00;
inline constexpr std::uint8_t block_used = 0xA5;

// Sizes of small blocks: multiples of 16 up to 128, then eight steps for each doubling.
inline constexpr unsigned size_class_count = 64;

constexpr std::size_t class_size(unsigned c) noexcept {
  if (c < 8) return 16 * (std::size_t{c} + 1);
  const unsigned doubling = (c - 8) / 8, step = (c - 8) % 8;
  return (std::size_t{128} << doubling) / 8 * (8 + step + 1);
}

// The smallest class that holds `size` bytes, 0 < size <= class_size(size_class_count - 1).
constexpr unsigned size_class_for(std::size_t size) noexcept {
  if (size <= 128) return static_cast<unsigned>((size + 15) / 16) - 1;
  const unsigned doubling = static_cast<unsigned>(63 - __builtin_clzll((size - 1) / 128));
  const std::size_t base = std::size_t{128} << doubling, step = base / 8;
  return 8 + doubling * 8 + static_cast<unsigned>((size - base + step - 1) / step) - 1;
}
static_assert(class_size(size_class_for(1)) == 16 && class_size(size_class_for(128)) == 128 &&
              class_size(size_class_for(129)) == 144);
static_assert(class_size(size_class_for(256)) == 256 && class_size(size_class_for(257)) == 288 &&
              class_size(size_class_for(4096)) == 4096);
static_assert(class_size(size_class_count - 1) == 16384 &&
              size_class_for(16384) == size_class_count - 1);

// Number of blocks of a slab, and where the first one starts.
struct slab_layout {
  std::uint32_t capacity;
  std::uint32_t first;  // bytes from the chunk's start
};
constexpr slab_layout slab_layout_of(std::size_t chunk_size, std::size_t block_size) noexcept {
  std::size_t capacity = chunk_size / block_size;
  auto states = [](std::size_t n) { return (n + 63) / 64 * 64; };
  while (capacity > 0 && states(capacity) + capacity * block_size > chunk_size) --capacity;
  return {static_cast<std::uint32_t>(capacity), static_cast<std::uint32_t>(states(capacity))};
}

// Requests for more bytes take whole chunks.
constexpr std::size_t max_slab_block_size(std::size_t chunk_size) noexcept {
  return chunk_size / 4;
}

}  // namespace stele::format
