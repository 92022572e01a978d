// Parity blocks over home: home is cut into matrices of 7 x 7 lines, each with two parity blocks.
// docs/format/parity.md is the page for readers.
//
// A matrix is 49 consecutive lines. A column is seven consecutive lines; a row is one line of each
// column. So a line's place follows from its address. A parity block holds a checksum of each line,
// the sum of each column and the sum of each row, of all 49 lines as they were at its epoch. Of a
// matrix's two blocks, the valid one with the later epoch counts. Source: Wu, Ren and Li,
// "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019), section III-C.
// Line checksums, epochs and the second block are additions of ours.
#pragma once

#include <format/log_line.h>
#include <media/crc32c.h>
#include <stele/detail/access.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace stele::format {

using detail::line_size;

inline constexpr unsigned matrix_side = 7;
inline constexpr unsigned matrix_lines = matrix_side * matrix_side;
// A bit for each line.
inline constexpr std::uint64_t full_matrix_mask = (std::uint64_t{1} << matrix_lines) - 1;
inline constexpr unsigned parity_blocks = 2;  // of each matrix

// The lines of column 0.
inline constexpr std::uint64_t first_column_mask = (std::uint64_t{1} << matrix_side) - 1;

constexpr unsigned column_of(unsigned line) noexcept {
  return line / matrix_side;
}
constexpr unsigned row_of(unsigned line) noexcept {
  return line % matrix_side;
}
constexpr unsigned line_of(unsigned row, unsigned column) noexcept {
  return column * matrix_side + row;
}

using line_words = std::array<std::uint64_t, 8>;
static_assert(sizeof(line_words) == line_size);

enum class parity_kind : std::uint64_t {
  none = 0,  // never written
  active = 1,
  // From its epoch on nothing is covered; column and row sums and line checksums do not count.
  ended = 2,
};

struct alignas(line_size) parity_block {
  // Over the rest (ended: the rest of the first line), seeded with pool id and place.
  std::uint64_t checksum;
  std::uint64_t epoch;
  parity_kind kind;
  std::uint64_t skipped;                              // a bit for each line that was not flushed
  std::array<std::uint32_t, matrix_lines> lines;      // checksums
  std::array<std::uint32_t, 7> reserved;              // zero
  std::array<line_words, matrix_side> columns, rows;  // sums, word by word, modulo 2^64
  // Sums of the lines in odd rows, and in odd columns; only in pools with halves.
  std::array<line_words, matrix_side> odd_columns, odd_rows;
};
static_assert(sizeof(parity_block) == 32 * line_size &&
              offsetof(parity_block, columns) == 4 * line_size);

// Bytes on media of a block with sums of whole rows and columns, and of one that also has the sums
// of their odd halves.
inline constexpr std::uint32_t plain_block_size = offsetof(parity_block, odd_columns),
                               halves_block_size = sizeof(parity_block);

constexpr std::uint64_t matrix_count(std::uint64_t home_size) noexcept {
  return (home_size + matrix_lines * line_size - 1) / (matrix_lines * line_size);
}

// Checksum of a line. A partly stored line must not pass for the line that was intended.
inline constexpr std::uint32_t line_checksum_seed = 0x57E1E;
inline std::uint32_t line_checksum(const line_words& line) noexcept {
  return media::crc32c(line_checksum_seed, line.data(), line.size());
}

static_assert(offsetof(parity_block, checksum) == 0 && offsetof(parity_block, epoch) == 8 &&
              offsetof(parity_block, kind) == 16 && offsetof(parity_block, skipped) == 24 &&
              offsetof(parity_block, lines) == 32 && offsetof(parity_block, reserved) == 228);
static_assert(offsetof(parity_block, rows) == 704 && offsetof(parity_block, odd_columns) == 1152 &&
              offsetof(parity_block, odd_rows) == 1600);
static_assert(alignof(parity_block) == line_size && std::is_trivially_copyable_v<parity_block>);
static_assert(plain_block_size == 1152 && halves_block_size == 2048 &&
              plain_block_size % line_size == 0);
static_assert(
    [] {
      for (unsigned line = 0; line < matrix_lines; ++line)
        if (row_of(line) >= matrix_side || column_of(line) >= matrix_side ||
            line_of(row_of(line), column_of(line)) != line)
          return false;
      return true;
    }(),
    "a line's place follows from its number");
static_assert(std::popcount(full_matrix_mask) == matrix_lines &&
              std::popcount(first_column_mask) == matrix_side);
static_assert(matrix_count(0) == 0 && matrix_count(1) == 1 && matrix_count(3136) == 1 &&
              matrix_count(3137) == 2);

}  // namespace stele::format
