// segment_sizes: arithmetic for slots in segments. Each segment after the second is twice as long
// as the one before. Internal to hash_map and vector.
//
// The first segment holds a power of two of slots, at least two. Every later segment holds as many
// as all segments before it together. So a container grows by one allocation, no slot moves, and
// the highest bit of slot number n gives its segment. One word describes all segments; zero means
// none. The containers keep the pointers to the segments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::detail {

struct segment_sizes {
  // Low byte: log2 of the first segment's slots; above it: log2 of all slots.
  std::uint64_t word = 0;

  static segment_sizes with_first_segment(std::size_t slots) {
    const auto log2 = static_cast<std::uint64_t>(std::countr_zero(slots));
    return {log2 | log2 << 8};
  }
  segment_sizes grown() const { return {word + 256}; }
  segment_sizes shrunk() const { return {word - 256}; }  // by its last segment

  // Whether the other functions may be called, for a word from unchecked data.
  bool valid(std::size_t most_segments) const {
    const std::uint64_t first_log2 = word & 255, all_log2 = word >> 8;
    return empty() || (all_log2 < 47 && first_log2 >= 1 && first_log2 <= all_log2 &&
                       segment_count() <= most_segments);
  }
  bool empty() const { return word == 0; }
  std::size_t first_segment_slots() const { return std::size_t{1} << (word & 255); }
  std::size_t slots() const { return empty() ? 0 : std::size_t{1} << (word >> 8); }
  std::size_t segment_count() const { return empty() ? 0 : (word >> 8) - (word & 255) + 1; }
  std::size_t segment_of(std::size_t slot) const {
    return static_cast<std::size_t>(std::bit_width(slot >> (word & 255)));
  }
  std::size_t start_of(std::size_t segment) const {
    return segment == 0 ? 0 : first_segment_slots() << (segment - 1);
  }
  std::size_t size_of(std::size_t segment) const {
    return segment == 0 ? first_segment_slots() : start_of(segment);
  }
};

}  // namespace stele::detail
