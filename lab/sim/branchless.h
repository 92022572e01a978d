// Choices without branches, for outcomes that the host cannot predict. The compiler makes branches
// of some `?:` in loops.
#pragma once

#include <cstdint>

namespace stele::sim {

[[gnu::always_inline]] constexpr std::uint64_t select(bool first, std::uint64_t a,
                                                      std::uint64_t b) noexcept {
  return b ^ ((a ^ b) & (0 - std::uint64_t{first}));
}
[[gnu::always_inline]] constexpr std::uint64_t larger_of(std::uint64_t a,
                                                         std::uint64_t b) noexcept {
  return a > b ? a : b;  // by value: std::max chooses between addresses, with a branch
}

}  // namespace stele::sim
