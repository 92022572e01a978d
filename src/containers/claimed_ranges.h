// The ranges of a heap that a walk has claimed so far. A walk over content that is not trusted
// claims what it enters; so it enters nothing twice, and ends.
#pragma once

#include <base/assert.h>

#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace stele::detail {

class claimed_ranges {
 public:
  // False: `offset` is no place where a block can begin, or part of the range was claimed before.
  bool claim(std::uint64_t offset, std::uint64_t bytes) {
    if (offset % granule != 0) return false;
    const std::uint64_t first = offset / granule, end = (offset + bytes + granule - 1) / granule;
    STELE_ASSERT(end >= first);  // the caller has seen that the image has the range
    for (std::uint64_t g = first; g < end; ++g) {
      auto claimed = pages_[g / page_granules][g % page_granules];
      if (claimed) return false;
      claimed = true;
    }
    return true;
  }

 private:
  // The size and the begin of every block are multiples of a granule.
  static constexpr std::uint64_t granule = 8, page_granules = 512;
  std::unordered_map<std::uint64_t, std::bitset<page_granules>> pages_;
};

}  // namespace stele::detail
