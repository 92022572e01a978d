// Simulated time, in whole picoseconds from the beginning of the run.
#pragma once

#include <cmath>
#include <cstdint>

namespace stele::sim {

using picoseconds = std::uint64_t;
inline constexpr picoseconds never = ~picoseconds{0};
// No run may go beyond it, 53 days: sums of two times do not overflow.
inline constexpr picoseconds latest = picoseconds{1} << 62;
// Of the times of many requests, banks or ranks: it does not overflow.
__extension__ typedef unsigned __int128 picosecond_sum;

constexpr picoseconds from_ns(double ns) noexcept {
  return static_cast<picoseconds>(ns * 1000 + 0.5);
}

}  // namespace stele::sim
