// A pass for each half of the lines: the sums of seven rows and of one column stay in registers.
#include <base/assert.h>
#include <media/square_sums.h>

#include <cstring>

namespace stele::media {

namespace {

constexpr unsigned line_words = 8, part_words = 4;
using part [[gnu::vector_size(part_words * 8)]] = std::uint64_t;
static_assert(line_words % part_words == 0 && sizeof(part) == part_words * 8);

// A predicate of assertions: the columns add up to what the rows add up to, in each word.
[[maybe_unused]] bool agree(const std::uint64_t* columns, const std::uint64_t* rows) noexcept {
  for (unsigned word = 0; word < line_words; ++word) {
    std::uint64_t difference = 0;
    for (unsigned i = 0; i < square_side; ++i)
      difference += columns[i * line_words + word] - rows[i * line_words + word];
    if (difference != 0) return false;
  }
  return true;
}

[[gnu::always_inline]] inline void sum(const std::uint64_t* lines, std::uint64_t* columns,
                                       std::uint64_t* rows) noexcept {
  for (unsigned at = 0; at < line_words; at += part_words) {
    part row[square_side] = {};
    for (unsigned c = 0; c < square_side; ++c) {
      part column = {};
#pragma GCC unroll 8
      for (unsigned r = 0; r < square_side; ++r) {
        part line;
        std::memcpy(&line, lines + (c * square_side + r) * line_words + at, sizeof line);
        column += line;
        row[r] += line;
      }
      std::memcpy(columns + c * line_words + at, &column, sizeof column);
    }
#pragma GCC unroll 8
    for (unsigned r = 0; r < square_side; ++r)
      std::memcpy(rows + r * line_words + at, &row[r], sizeof row[r]);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void wide_sum(const std::uint64_t* lines, std::uint64_t* columns,
                                      std::uint64_t* rows) noexcept {
  sum(lines, columns, rows);
}
#endif

}  // namespace

void sum_square(const std::uint64_t* lines, std::uint64_t* columns, std::uint64_t* rows) noexcept {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide) [[likely]] {
    wide_sum(lines, columns, rows);
    STELE_ASSERT_WHOLE(agree(columns, rows));
    return;
  }
#endif
  sum(lines, columns, rows);
  STELE_ASSERT_WHOLE(agree(columns, rows));
}

}  // namespace stele::media
