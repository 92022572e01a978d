// The sums of the rows and of the columns of 7 x 7 lines of 64 bytes, word by word modulo 2^64.
// Uses the processor's wide additions if there are any; the values do not depend on them.
#pragma once

#include <cstdint>

namespace stele::media {

inline constexpr unsigned square_side = 7;

// `lines`: 49 lines, column after column. `columns`, `rows`: seven lines each.
void sum_square(const std::uint64_t* lines, std::uint64_t* columns, std::uint64_t* rows) noexcept;

}  // namespace stele::media
