// Heap metadata on media. docs/format/heap.md is the page for readers.
//
// The heap is an array of chunks. The chunk table has one guarded word for each chunk: free (0), a
// slab of a size class, the head of a large slab or of an extent with its length, or the tail of
// either; in a pool that has grown, also the head of the run that holds the table itself. A slab
// begins with one state byte for each block, padded to a line; the blocks follow. Those of a large
// slab straddle the borders of its chunks. Only the transaction that reserved a block or chunk
// changes its state, so neighbouring bytes need no common lock, and a redo log may replay single
// bytes.
#pragma once

#include <format/guarded.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::format {

enum class chunk_kind : std::uint8_t {
  free = 0,
  small = 1,
  extent = 2,
  tail = 3,
  table = 4,
  large_slab = 5,  // pools of version 2
};
inline constexpr chunk_kind last_chunk_kind = chunk_kind::large_slab;
constexpr bool is_run_head(chunk_kind k) noexcept {
  return k == chunk_kind::extent || k == chunk_kind::table || k == chunk_kind::large_slab;
}

struct chunk_descriptor {
  chunk_kind kind = chunk_kind::free;
  std::uint8_t size_class = 0;  // of a slab; large slab: number in large_shapes
  std::uint32_t length = 0;     // of a run: number of chunks, including the head

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

// Sizes of small blocks: multiples of 16 up to 128, then eight steps for each doubling; from
// first_odd_class on the odd multiples of 8 up to 120, which pools of version 1 lack.
inline constexpr unsigned size_class_count = 71, first_odd_class = 64;

constexpr std::size_t class_size(unsigned c) noexcept {
  if (c < 8) return 16 * (std::size_t{c} + 1);
  if (c >= first_odd_class) return 24 + 16 * (std::size_t{c} - first_odd_class);
  const unsigned doubling = (c - 8) / 8, step = (c - 8) % 8;
  return (std::size_t{128} << doubling) / 8 * (8 + step + 1);
}
inline constexpr std::size_t max_class_size = class_size(first_odd_class - 1);

// The smallest class that holds `size` bytes, 0 < size <= max_class_size, in blocks of which each
// begins at a multiple of 16.
constexpr unsigned size_class_for(std::size_t size) noexcept {
  if (size <= 128) return static_cast<unsigned>((size + 15) / 16) - 1;
  const unsigned doubling = static_cast<unsigned>(63 - __builtin_clzll((size - 1) / 128));
  const std::size_t base = std::size_t{128} << doubling, step = base / 8;
  return 8 + doubling * 8 + static_cast<unsigned>((size - base + step - 1) / step) - 1;
}
// The same, in blocks that may begin at any multiple of 8.
constexpr unsigned packed_size_class_for(std::size_t size) noexcept {
  const std::size_t words = (size + 7) / 8;
  if (words % 2 == 0 || words < 3 || words > 15) return size_class_for(size);
  return first_odd_class + static_cast<unsigned>(words - 3) / 2;
}
static_assert(class_size(size_class_for(1)) == 16 && class_size(size_class_for(128)) == 128 &&
              class_size(size_class_for(129)) == 144);
static_assert(class_size(size_class_for(256)) == 256 && class_size(size_class_for(257)) == 288 &&
              class_size(size_class_for(4096)) == 4096);
static_assert(max_class_size == 16384 && size_class_for(max_class_size) == first_odd_class - 1);
static_assert(class_size(packed_size_class_for(17)) == 24 &&
              class_size(packed_size_class_for(25)) == 32 &&
              class_size(packed_size_class_for(120)) == 120 &&
              packed_size_class_for(120) == size_class_count - 1);

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

// Larger blocks are in large slabs or are extents.
constexpr std::size_t max_slab_block_size(std::size_t chunk_size) noexcept {
  return chunk_size / 4;
}

// A large slab: a run of `chunks` chunks that is divided into `blocks` equal blocks. Its descriptor
// has the number of the shape. The sizes between a sixteenth of a chunk and 6.5 chunks have steps
// of at most an eighth, where no extent (a whole number of chunks) is as close.
struct large_shape {
  std::uint8_t chunks, blocks;
};
inline constexpr std::array<large_shape, 44> large_shapes = {
    {{1, 16}, {1, 15}, {1, 14}, {1, 13}, {1, 12}, {1, 11}, {1, 10}, {1, 9}, {1, 8},
     {2, 15}, {1, 7},  {2, 13}, {1, 6},  {2, 11}, {1, 5},  {2, 9},  {1, 4}, {3, 11},
     {3, 10}, {1, 3},  {3, 8},  {2, 5},  {4, 9},  {1, 2},  {5, 9},  {3, 5}, {2, 3},
     {3, 4},  {5, 6},  {7, 8},  {9, 8},  {5, 4},  {4, 3},  {3, 2},  {5, 3}, {7, 4},
     {9, 4},  {5, 2},  {8, 3},  {10, 3}, {7, 2},  {9, 2},  {11, 2}, {13, 2}}};
inline constexpr std::uint32_t large_slab_first_block = 64;  // bytes from the run's start

// Multiples of 64 from 4096 bytes on, below that of 16.
constexpr std::size_t large_block_size(std::size_t chunk_size, large_shape s) noexcept {
  const std::size_t most = (s.chunks * chunk_size - large_slab_first_block) / s.blocks;
  return most / (most >= 4096 ? 64 : 16) * (most >= 4096 ? 64 : 16);
}
static_assert(
    [] {
      for (std::size_t i = 1; i < large_shapes.size(); ++i)
        if (large_shapes[i].blocks > large_slab_first_block ||
            large_shapes[i].chunks * large_shapes[i - 1].blocks <=
                large_shapes[i - 1].chunks * large_shapes[i].blocks)
          return false;
      return true;
    }(),
    "block sizes ascend, and the states of a large slab fit before its first block");

// Classes of blocks that a program has in one array: the small ones, then the large shapes.
inline constexpr unsigned block_class_count =
    size_class_count + static_cast<unsigned>(large_shapes.size());

static_assert(block_class_count == 115);

// The descriptor's bits; it is guarded, so it has 48.
static_assert(chunk_descriptor{chunk_kind::large_slab, 0xAB, 0x12345678}.pack() ==
              0x12345678'AB05u);
static_assert(chunk_descriptor{last_chunk_kind, 0xFF, ~std::uint32_t{0}}.pack() < guarded_limit);
static_assert(chunk_descriptor::unpack(0x12345678'AB02u).kind == chunk_kind::extent &&
              chunk_descriptor::unpack(0x12345678'AB02u).size_class == 0xAB &&
              chunk_descriptor::unpack(0x12345678'AB02u).length == 0x12345678);
static_assert(chunk_descriptor::nonzero_free().pack() == 0xF500 && chunk_descriptor().pack() == 0 &&
              chunk_descriptor().kind == chunk_kind::free);
static_assert(!is_run_head(chunk_kind::free) && !is_run_head(chunk_kind::small) &&
              !is_run_head(chunk_kind::tail));
static_assert(std::popcount(static_cast<unsigned>(block_free ^ block_used)) >= 4,
              "one flipped bit turns neither state into the other");

// A class is the smallest that holds a size; they ascend.
static_assert([] {
  for (unsigned c = 0; c < first_odd_class; ++c)
    if (size_class_for(class_size(c)) != c || class_size(c) % 16 != 0 ||
        (c + 1 < first_odd_class && size_class_for(class_size(c) + 1) != c + 1))
      return false;
  return true;
}());
static_assert([] {
  for (std::size_t size = 1; size <= 256; ++size)
    if (const unsigned c = packed_size_class_for(size);
        c >= size_class_count || class_size(c) < size || class_size(c) % 8 != 0 ||
        class_size(c) > class_size(size_class_for(size)))
      return false;
  return true;
}());
// The capacity of a slab is the largest n with round64(n) + n * size <= chunk.
static_assert([] {
  for (const std::size_t chunk : {4096u, 16384u, 65536u})
    for (unsigned c = 0; c < size_class_count; ++c) {
      const std::size_t size = class_size(c);
      if (size > max_slab_block_size(chunk)) continue;
      const slab_layout l = slab_layout_of(chunk, size);
      const std::size_t more = l.capacity + std::size_t{1};
      if (l.capacity == 0 || l.first % 64 != 0 || l.first < l.capacity ||
          l.first + l.capacity * size > chunk || (more + 63) / 64 * 64 + more * size <= chunk)
        return false;
    }
  return true;
}());
static_assert(
    [] {
      for (const std::size_t chunk : {4096u, 16384u, 65536u})
        for (const large_shape s : large_shapes)
          if (const std::size_t size = large_block_size(chunk, s);
              size % 16 != 0 || (size >= 4096 && size % 64 != 0) ||
              large_slab_first_block + s.blocks * size > s.chunks * chunk)
            return false;
      return true;
    }(),
    "the blocks of a large slab lie within its run, and begin at multiples of 16 or 64");

}  // namespace stele::format
