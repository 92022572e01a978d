// Which kind of block a request gets: a block of a slab, of a large slab, or an extent. A choice of
// the program, not of the format: any kind that is large enough would be right.
//
// The rule. Up to a sixteenth of a chunk: the smallest class. Beyond: its class, if that loses at
// most an eighth of the chunk bytes that a block costs; else an extent, if that does; else whatever
// costs the fewest chunk bytes for each block. A large slab is considered if its run is at most a
// sixteenth of the pool's chunks. So a small pool is not used up by the first blocks of a few
// sizes. Log-structured pools have neither large slabs nor blocks of odd multiples of 8: what they
// save are addresses, and such a pool has four times as many as bytes.
#pragma once

#include <base/assert.h>
#include <format/heap_layout.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stele::storage {

// The blocks of one class: how a run of chunks is divided.
struct block_class {
  std::size_t block_size = 0;  // 0: no such blocks in this pool
  std::uint32_t chunks = 0, capacity = 0;
  std::uint32_t first = 0;  // of the first block, bytes from the run's start
};
// `c` < format::block_class_count.
block_class block_class_of(std::size_t chunk_size, unsigned c) noexcept;
// The class of a slab, large or not, from its descriptor, and the reverse.
constexpr bool is_slab(format::chunk_kind k) noexcept {
  return k == format::chunk_kind::small || k == format::chunk_kind::large_slab;
}
constexpr bool is_large(unsigned c) noexcept {
  return c >= format::size_class_count;
}
constexpr unsigned class_of(const format::chunk_descriptor& d) noexcept {
  STELE_ASSERT(is_slab(d.kind));
  return d.kind == format::chunk_kind::large_slab ? format::size_class_count + d.size_class
                                                  : d.size_class;
}
format::chunk_descriptor slab_head(unsigned c) noexcept;
// The blocks that a sound descriptor of a chunk stands for; of block_size 0 if the chunk begins no
// slab.
block_class blocks_of(std::size_t chunk_size, const format::chunk_descriptor& d) noexcept;

class size_plan {
 public:
  static constexpr unsigned extent = format::block_class_count;  // not a class

  size_plan(std::size_t chunk_size, std::uint64_t chunk_count, bool log_structured = false);

  // The class for `size` > 0 bytes, or `extent`. `alignment` <= 64, a power of two.
  unsigned class_for(std::size_t size, std::size_t alignment) const noexcept {
    STELE_ASSERT(size != 0 && alignment <= 64);
    if (size <= formula_up_to_) [[likely]] {
      if (alignment <= packed_alignment_) return format::packed_size_class_for(size);
      if (alignment <= 16) return format::size_class_for(size);
    }
    return alignment > 16 ? aligned_class_for(size) : planned_class_for(size);
  }
  // The class of slabs of one chunk, or `extent`: where there is no run for a large slab.
  unsigned fallback_for(std::size_t size, std::size_t alignment) const noexcept;

  // What a block costs: its share of a run of `bytes` bytes with `blocks` blocks.
  struct cost {
    std::uint64_t bytes = 0, blocks = 1;
    bool operator<(const cost& other) const noexcept {
      STELE_ASSERT(blocks != 0 && other.blocks != 0);
      return bytes * other.blocks < other.bytes * blocks;
    }
  };
  cost cost_of(std::size_t size, unsigned c) const noexcept;

 private:
  struct step {
    std::size_t up_to;  // bytes
    unsigned chosen;
  };
  unsigned planned_class_for(std::size_t size) const noexcept;
  unsigned aligned_class_for(std::size_t size) const noexcept;
  unsigned choose(std::size_t size) const noexcept;

  std::size_t chunk_size_, formula_up_to_, packed_alignment_;
  std::uint64_t most_chunks_;  // of a large slab's run
  std::vector<step> steps_;    // ascending; beyond the last: extents
};

}  // namespace stele::storage
