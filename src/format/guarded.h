// A guarded word: 48 bits of value and 16 check bits in one aligned 8-byte word, so it never tears.
// The check bits are the parity of the value and 15 bits of a hash seeded with the pool's id and
// the word's offset. The parity detects any odd number of changed value bits. Other changes, and a
// word copied from elsewhere, pass with probability 2^-15. Value 0 is stored as 0, so zeroed memory
// is valid.
#pragma once

#include <base/rng.h>

#include <bit>
#include <cstdint>
#include <optional>

namespace stele::format {

inline constexpr std::uint64_t guarded_limit = std::uint64_t{1} << 48;
// TxIDs and epochs are stored in guarded words and only grow. A value at or above this limit is
// damage: at a hundred million a second, a pool reaches it after two weeks. The limit is half of
// what fits the word, so that no accepted value is one below a value that does not fit.
inline constexpr std::uint64_t txid_limit = std::uint64_t{1} << 47;

constexpr std::uint64_t guard(std::uint64_t value, std::uint64_t pool_id,
                              std::uint64_t offset) noexcept {
  if (value == 0) return 0;
  const std::uint64_t hash = base::mix(base::mix(value ^ pool_id) ^ offset) >> 49;
  const std::uint64_t parity = static_cast<std::uint64_t>(std::popcount(value)) & 1;
  return value | parity << 48 | hash << 49;
}

// The value, or nullopt if the check bits do not match.
constexpr std::optional<std::uint64_t> unguard(std::uint64_t word, std::uint64_t pool_id,
                                               std::uint64_t offset) noexcept {
  const std::uint64_t value = word & (guarded_limit - 1);
  if (guard(value, pool_id, offset) != word) return std::nullopt;
  return value;
}

static_assert(txid_limit == guarded_limit / 2);
static_assert(guard(0, 7, 512) == 0 && unguard(0, 7, 512) == 0);
static_assert((guard(5, 7, 512) & (guarded_limit - 1)) == 5);
static_assert((guard(5, 7, 512) >> 48 & 1) == 0 && (guard(4, 7, 512) >> 48 & 1) == 1,
              "bit 48 is the parity");
static_assert(unguard(guard(txid_limit - 1, 7, 512), 7, 512) == txid_limit - 1);
static_assert(!unguard(guard(5, 7, 512), 7, 576) && !unguard(guard(5, 7, 512), 8, 512),
              "a word belongs to a place in a pool");
static_assert(
    [] {
      for (unsigned bit = 0; bit < 64; ++bit)
        if (unguard(guard(0x5E55, 7, 512) ^ std::uint64_t{1} << bit, 7, 512)) return false;
      return true;
    }(),
    "no single flipped bit goes unnoticed");

}  // namespace stele::format
