// segment_sizes: the arithmetic of slots in segments of which each, but the first two, is twice as
// long as the one before it.
//
// The first segment holds a power of two of slots, two or more, every later one as many as all
// before it together. So a container grows by one allocation, no slot ever moves, and slot number n
// is found by the number of its highest bit. One word says it all, and zero is: no segment. Holds
// no slots itself; hash_map and vector keep the pointers to their segments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::detail {

struct segment_sizes {
  std::uint64_t word =
      0;  // the low byte: log2 of the first segment's slots; above it: log2 of all slots

  static segment_sizes with_first_segment(std::size_t slots) {
    const auto log2 = static_cast<std::uint64_t>(std::countr_zero(slots));
    return {log2 | log2 << 8};
  }
  segment_sizes grown() const { return {word + 256}; }
  segment_sizes shrunk() const { return {word - 256}; }  // by a later segment

  // Whether it can be asked: of words that nobody vouches for.
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
