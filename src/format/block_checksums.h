// Block checksums of home: they detect damage of a pool. docs/format/pool.md is the page for
// readers.
//
// There is one checksum word for each 512 bytes of home, counted from home_offset on, at
// block_checksums_offset. A block checksum is a sum of terms, one for each byte: a change of a byte
// adds the difference of its terms, whatever the rest of the block is. So commits of different
// threads may change one block, and recovery can compute the checksum from the logs. Blocks that
// hold block checksums have none. Only chunks in use, the chunk table and the home header are
// checked.
//
// The multipliers of a word are odd, so one changed bit always shows. Each word counts once as it
// is and once byte-reversed, so changes of the top bits of two words do not cancel. Other damage
// goes unnoticed with probability 2^-64. Not cryptographic.
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

// State of the block checksums, in the word at block_checksum_state_offset.
enum class block_checksum_state : std::uint64_t {
  legacy = 0,    // checksums of an earlier program (compute_legacy_block_checksum), or never opened
  none = 1,      // no block checksum counts
  valid = 2,     // after adding the deltas above the watermark, each block in use has its checksum
  updating = 3,  // as valid, except for the blocks that records above the watermark name
};
inline constexpr std::uint64_t last_block_checksum_state = 3;

// Stored in place of a checksum. Never written: the block is zero. Unknown: the block is not
// checked.
inline constexpr std::uint64_t block_checksum_never_written = 0, block_checksum_unknown = 1;

// Number of checksum words for a home of this size.
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

// The term that a word at this pool offset adds to its block checksum: the sum of its bytes' terms.
constexpr std::uint64_t checksum_term(std::uint64_t word, std::uint64_t offset) noexcept {
  const checksum_multipliers& w = word_multipliers[offset / 8 % checksum_block_words];
  return word * w.plain + __builtin_bswap64(word) * w.mirrored;
}
constexpr std::uint64_t zero_block_checksum(std::uint64_t id, std::uint64_t offset) noexcept {
  return base::mix(base::mix(id) ^ offset);
}

// `block` is 8-aligned. Commits may store words to it at the same time.
inline std::uint64_t compute_block_checksum(const std::byte* block, std::uint64_t id,
                                            std::uint64_t offset) noexcept {
  std::uint64_t sum = zero_block_checksum(id, offset);
  for (std::size_t at = 0; at < checksum_block_size; at += 8)
    sum += checksum_term(
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(block + at), __ATOMIC_RELAXED), at);
  return sum;
}

// For block_checksum_state::legacy; there 0 means that the block is not checked. Four parallel
// checksums, each a bijection of what it has added up.
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

static_assert(last_block_checksum_state ==
              static_cast<std::uint64_t>(block_checksum_state::updating));
static_assert(block_checksum_never_written != block_checksum_unknown);
static_assert(block_checksum_count(0) == 0 && block_checksum_count(1) == 1 &&
              block_checksum_count(512) == 1 && block_checksum_count(513) == 2);
static_assert(
    [] {
      for (const checksum_multipliers& m : word_multipliers)
        if (m.plain % 2 == 0 || m.mirrored % 2 == 0) return false;
      return true;
    }(),
    "one changed bit always shows");
// Zero bytes add nothing, and the terms of a word's bytes add up to its own: a commit may know a
// part of a word only.
static_assert(checksum_term(0, 8) == 0 &&
              checksum_term(0xA5'00000000u, 8) + checksum_term(0x17, 8) ==
                  checksum_term(0xA5'00000017u, 8));
// A place counts from the begin of its block, and differs from the others.
static_assert(checksum_term(1, 8) == checksum_term(1, checksum_block_size + 8) &&
              checksum_term(1, 8) != checksum_term(1, 16));
static_assert(zero_block_checksum(1, 4096) != zero_block_checksum(1, 4608) &&
              zero_block_checksum(1, 4096) != zero_block_checksum(2, 4096));

}  // namespace stele::format
