// A guarded word: 48 bits of value and 16 bits of check, stored as one 8-byte unit, so it never tears and a changed bit
// is seen. The check is seeded with the pool's id and the word's offset: a word copied from elsewhere does not pass.
// Value 0 is stored as 0, so zeroed memory is valid.
#pragma once

#include <base/rng.h>

#include <cstdint>
#include <optional>

namespace stele::format {

inline constexpr std::uint64_t guarded_limit = std::uint64_t{1} << 48;

constexpr std::uint64_t guard(std::uint64_t value, std::uint64_t pool_id, std::uint64_t offset) noexcept {
  if (value == 0) return 0;
  const std::uint64_t check = base::mix(base::mix(value ^ pool_id) ^ offset) >> 48;
  return value | check << 48;
}

// The value, or nothing when the check fails.
constexpr std::optional<std::uint64_t> unguard(std::uint64_t word, std::uint64_t pool_id, std::uint64_t offset) noexcept {
  const std::uint64_t value = word & (guarded_limit - 1);
  if (guard(value, pool_id, offset) != word) return std::nullopt;
  return value;
}

}  // namespace stele::format
