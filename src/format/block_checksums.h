// Sums of home's blocks: damage of a pool is found. docs/format/pool.md is the page for readers.
//
// One word for each 512 bytes of home, counted from home_offset on, at block_checksums_offset. The
// sum adds up what its bytes weigh: the change of a byte changes it by the difference, whatever the
// rest of the block is. So commits of different threads may change one block, and recovery can tell
// from the logs what the sum is to be. Blocks that the sums themselves lie in have none. Only
// chunks in use, the chunk table and the home header count.
//
// The weights of a word are odd, so one changed bit always shows; each byte weighs once as it
// stands and once mirrored, so the top bits of two words do not cancel. Damage of more bits goes
// unseen with probability 2^-64. Not cryptographic.
#pragma once

#include <base/checksum.h>
#include <base/rng.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stele::format {

inline constexpr std::size_t checksum_block_size = 512;
inline constexpr std::size_t checksum_block_words = checksum_block_size / 8;

// What the word at block_checksum_state_offset says of the sums.
enum class block_checksum_state : std::uint64_t {
  legacy = 0,    // those of an earlier program (compute_legacy_block_checksum); also of a pool that
                 // was never opened
  none = 1,      // they do not count
  valid = 2,     // the sum of a block in use is that of its content, once the records above the
                 // watermark are counted in
  updating = 3,  // the same, but for the blocks that these records name
};
inline constexpr std::uint64_t last_block_checksum_state = 3;

// Stored in place of a sum: the block was never stored to, it is zero; nothing is said of the
// block.
inline constexpr std::uint64_t block_checksum_never_written = 0, block_checksum_unknown = 1;

// Words of sums for a home of so many bytes.
constexpr std::uint64_t block_checksum_count(std::uint64_t home_bytes) noexcept {
  return (home_bytes + checksum_block_size - 1) / checksum_block_size;
}

struct checksum_multipliers {
  std::uint64_t plain, mirrored;
};
inline constexpr std::array<checksum_multipliers, checksum_block_words> word_multipliers = [] {
  std::array<checksum_multipliers, checksum_block_words> all{};
  for (std::uint64_t i = 0; i < checksum_block_words; ++i)
    all[i] = {base::mix(2 * i) | 1, base::mix(2 * i + 1) | 1};
  return all;
}();

// What a word adds to its block's sum, by its offset in the pool: what its bytes add.
constexpr std::uint64_t checksum_term(std::uint64_t word, std::uint64_t offset) noexcept {
  const checksum_multipliers& w = word_multipliers[offset / 8 % checksum_block_words];
  return word * w.plain + __builtin_bswap64(word) * w.mirrored;
}
constexpr std::uint64_t zero_block_checksum(std::uint64_t id, std::uint64_t offset) noexcept {
  return base::mix(base::mix(id) ^ offset);
}

// Commits may be storing to the block, word by word. Aligned to 8 bytes.
inline std::uint64_t compute_block_checksum(const std::byte* block, std::uint64_t id,
                                            std::uint64_t offset) noexcept {
  std::uint64_t sum = zero_block_checksum(id, offset);
  for (std::size_t at = 0; at < checksum_block_size; at += 8)
    sum += checksum_term(
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(block + at), __ATOMIC_RELAXED), at);
  return sum;
}

// Of block_checksum_state::legacy: 0 says nothing of the block. Four sums beside each other, each a
// bijection of what it has summed up.
inline std::uint64_t compute_legacy_block_checksum(const std::byte* block, std::uint64_t id,
                                                   std::uint64_t offset) noexcept {
  base::checksum parts[4] = {base::checksum(id), base::checksum(id), base::checksum(id),
                             base::checksum(id)};
  for (std::size_t at = 0; at < checksum_block_size; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, block + at, 8);
    parts[at / 8 % 4].add(word);
  }
  base::checksum whole(id ^ offset);
  for (const base::checksum& p : parts) whole.add(p.value());
  return whole.value() == 0 ? 1 : whole.value();
}

}  // namespace stele::format
