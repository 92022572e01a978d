// Sums of home's blocks: a flipped bit of a pool at rest is found. docs/format/pool.md is the page for readers.
//
// One word for each 512 bytes of home, counted from home_offset on, at sums_offset: 0 when nothing is said of the block, else the
// sum of its 64 words. Blocks that the sums themselves lie in have none. Only chunks in use, the chunk table and the home header count.
#pragma once

#include <base/checksum.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stele::format {

inline constexpr std::size_t sum_block_size = 512;

// Words of sums for a home of so many bytes.
constexpr std::uint64_t sums_for(std::uint64_t home_bytes) noexcept { return (home_bytes + sum_block_size - 1) / sum_block_size; }

// Four sums beside each other, so that none waits for the other; each step is a bijection of its sum, so one changed word always shows.
// Commits may be storing to the block, word by word: what comes of that counts for nothing (docs/protocol/sums.md). Aligned to 8 bytes.
inline std::uint64_t sum_of_block(const std::byte* block, std::uint64_t id, std::uint64_t offset) noexcept {
  base::checksum parts[4] = {base::checksum(id), base::checksum(id), base::checksum(id), base::checksum(id)};
  for (std::size_t at = 0; at < sum_block_size; at += 8) {
    parts[at / 8 % 4].add(__atomic_load_n(reinterpret_cast<const std::uint64_t*>(block + at), __ATOMIC_RELAXED));
  }
  base::checksum whole(id ^ offset);
  for (const base::checksum& p : parts) whole.add(p.value());
  return whole.value() == 0 ? 1 : whole.value();
}

}  // namespace stele::format
