// Tests the checksums of a matrix: what they find and what they restore, pattern by pattern.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <published/archapt/parity_matrix.h>

#include <set>

namespace stele::detail {
namespace {

using format::full_matrix_mask;
using format::line_of;
using format::matrix_lines;
using format::matrix_side;

matrix random_matrix(base::rng& random) {
  matrix m;
  for (auto& line : m.lines)
    for (auto& word : line) word = random();
  return m;
}

std::uint64_t bit(unsigned row, unsigned column) {
  return std::uint64_t{1} << line_of(row, column);
}

// Changes the lines of a pattern, then corrects them.
correction spoil_and_correct(const matrix& good, std::uint64_t stale, bool halves, matrix& m,
                             base::rng& random) {
  format::parity_block block{};
  compute_checksums(good, halves, block);
  m = good;
  for (unsigned i = 0; i < matrix_lines; ++i)
    if ((stale >> i & 1) != 0) m.lines[i][random.below(8)] += 1 + random.below(1u << 20);
  return correct(m, halves, block);
}

TEST(checksum_matrix, finds_nothing_where_nothing_is_stale) {
  base::rng random(1);
  matrix m;
  const auto done = spoil_and_correct(random_matrix(random), 0, false, m, random);
  EXPECT_EQ(done.stale, 0u);
  EXPECT_EQ(done.uncorrected, 0u);
}

// A4
TEST(checksum_matrix, restores_every_single_line) {
  base::rng random(2);
  const matrix good = random_matrix(random);
  for (const bool halves : {false, true})
    for (unsigned i = 0; i < matrix_lines; ++i) {
      matrix m;
      const auto done = spoil_and_correct(good, std::uint64_t{1} << i, halves, m, random);
      EXPECT_EQ(done.stale, std::uint64_t{1} << i);
      EXPECT_EQ(done.uncorrected, 0u);
      EXPECT_EQ(m.lines, good.lines);
    }
}

// Figure 5 of Wu, Ren and Li (2019): b) two lines of one row are restored by their columns; c)
// lines where two rows and two columns cross are not restored.
TEST(checksum_matrix, restores_two_of_a_row_and_not_four_that_cross) {
  base::rng random(3);
  const matrix good = random_matrix(random);
  matrix m;
  auto done = spoil_and_correct(good, bit(0, 1) | bit(0, 3), false, m, random);
  EXPECT_EQ(done.uncorrected, 0u);
  EXPECT_EQ(m.lines, good.lines);
  const std::uint64_t crossing = bit(0, 1) | bit(0, 3) | bit(3, 1) | bit(3, 3);
  done = spoil_and_correct(good, crossing, false, m, random);
  EXPECT_EQ(done.stale, crossing);
  EXPECT_EQ(done.uncorrected, crossing) << "found, and never passed as good";
}

TEST(checksum_matrix, restores_crossing_lines_of_different_halves_with_the_second_row_and_column) {
  base::rng random(4);
  const matrix good = random_matrix(random);
  matrix m;
  const std::uint64_t crossing =
      bit(0, 1) | bit(0, 2) | bit(3, 1) | bit(3, 2);  // columns 1 and 2: an odd one and an even one
  EXPECT_EQ(spoil_and_correct(good, crossing, false, m, random).uncorrected, crossing);
  EXPECT_EQ(spoil_and_correct(good, crossing, true, m, random).uncorrected, 0u);
  EXPECT_EQ(m.lines, good.lines);
}

// A6
TEST(checksum_matrix, restores_exactly_what_the_pattern_allows) {
  base::rng random(5);
  const matrix good = random_matrix(random);
  unsigned restored = 0;
  for (int round = 0; round < 2000; ++round) {
    std::uint64_t stale = 0;
    for (std::uint64_t n = 1 + random.below(14); n != 0; --n)
      stale |= std::uint64_t{1} << random.below(matrix_lines);
    for (const bool halves : {false, true}) {
      matrix m;
      const auto done = spoil_and_correct(good, stale, halves, m, random);
      ASSERT_EQ(done.stale, stale);
      ASSERT_EQ(done.uncorrected == 0, correctable(stale, halves)) << round;
      for (unsigned i = 0; i < matrix_lines; ++i)
        ASSERT_TRUE((done.uncorrected >> i & 1) != 0 || m.lines[i] == good.lines[i])
            << "a line that is passed as good is";
      restored += done.uncorrected == 0;
    }
  }
  EXPECT_GT(restored, 100u);
}

// The 7 rows and 7 columns are the two sides of a graph whose edges are lines. Lines without a
// cycle can be peeled off.
TEST(checksum_matrix, restores_at_most_thirteen_lines) {
  base::rng random(6);
  int most = 0;
  for (int round = 0; round < 20000; ++round) {
    std::uint64_t stale = 0;
    std::set<unsigned> order;
    for (unsigned i = 0; i < matrix_lines; ++i)
      if (const std::uint64_t more =
              stale | std::uint64_t{1}
                          << (i * 17 + static_cast<unsigned>(random.below(matrix_lines))) %
                                 matrix_lines;
          correctable(more, false))
        stale = more;
    most = std::max(most, std::popcount(stale));
  }
  EXPECT_EQ(most, 13);
  EXPECT_FALSE(correctable(full_matrix_mask, false));
}

// A transfer within a row leaves the row's sum unchanged; the lines' own checksums show it.
TEST(checksum_matrix, finds_what_the_sums_do_not_show) {
  base::rng random(7);
  const matrix good = random_matrix(random);
  format::parity_block block{};
  compute_checksums(good, false, block);
  matrix m = good;
  m.lines[line_of(2, 0)][3] -= 100, m.lines[line_of(2, 5)][3] += 100;
  const auto done = correct(m, false, block);
  EXPECT_EQ(done.stale, bit(2, 0) | bit(2, 5));
  EXPECT_EQ(done.uncorrected, 0u);
  EXPECT_EQ(m.lines, good.lines);
}

// A5
TEST(checksum_matrix, knows_a_block_that_was_torn) {
  base::rng random(8);
  format::parity_block block{};
  compute_checksums(random_matrix(random), true, block);
  block.epoch = 5, block.kind = format::parity_kind::active;
  block.checksum = checksum_of(block, format::halves_block_size, 9);
  for (std::size_t byte = 8; byte < sizeof block; byte += 13) {
    format::parity_block torn = block;
    reinterpret_cast<unsigned char*>(&torn)[byte] ^= 0x10;
    EXPECT_NE(checksum_of(torn, format::halves_block_size, 9), block.checksum) << byte;
  }
  EXPECT_NE(checksum_of(block, format::halves_block_size, 10), block.checksum)
      << "at another place";
}

}  // namespace
}  // namespace stele::detail
