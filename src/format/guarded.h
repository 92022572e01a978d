// A guarded word: 48 bits of value and 16 bits of check, stored as one 8-byte unit, so it never
// tears. The check is the value's parity, which any odd number of changed value bits contradicts,
// and 15 bits of a hash seeded with the pool's id and the word's offset: other changes, and a word
// copied from elsewhere, pass with probability 2^-15. Value 0 is stored as 0, so zeroed memory is
// valid.
#pragma once

#include <base/rng.h>

#include <bit>
#include <cstdint>
#include <optional>

namespace stele::format {

inline constexpr std::uint64_t guarded_limit = std::uint64_t{1} << 48;
// TxIDs and epochs are kept in guarded words and only grow. One from here on is damage: at a
// hundred million a second it is two weeks off, and what still fits the word must not be one away
// from what does not.
inline constexpr std::uint64_t txid_limit = std::uint64_t{1} << 47;

constexpr std::uint64_t guard(std::uint64_t value, std::uint64_t pool_id,
                              std::uint64_t offset) noexcept {
  if (value == 0) return 0;
  const std::uint64_t hash = base::mix(base::mix(value ^ pool_id) ^ offset) >> 49;
  const std::uint64_t parity = static_cast<std::uint64_t>(std::popcount(value)) & 1;
  return value | parity << 48 | hash << 49;
}

// The value, or nothing when the check fails.
constexpr std::optional<std::uint64_t> unguard(std::uint64_t word, std::uint64_t pool_id,
                                               std::uint64_t offset) noexcept {
  const std::uint64_t value = word & (guarded_limit - 1);
  if (guard(value, pool_id, offset) != word) return std::nullopt;
  return value;
}

}  // namespace stele::format
