// The sums of a square's rows and columns, against additions one by one.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <media/square_sums.h>

#include <array>

namespace stele::media {
namespace {

constexpr unsigned words = 8;
using line = std::array<std::uint64_t, words>;
using lines = std::array<line, square_side>;

TEST(square_sums, are_those_of_additions_one_by_one) {
  base::rng random(3);
  std::array<line, square_side * square_side> square;
  for (line& l : square)
    for (auto& word : l) word = random();
  lines columns{}, rows{}, sum_of_columns, sum_of_rows;
  for (unsigned i = 0; i < square.size(); ++i)
    for (unsigned w = 0; w < words; ++w) {
      columns[i / square_side][w] += square[i][w];
      rows[i % square_side][w] += square[i][w];
    }
  sum_square(square[0].data(), sum_of_columns[0].data(), sum_of_rows[0].data());
  EXPECT_EQ(sum_of_columns, columns);
  EXPECT_EQ(sum_of_rows, rows);
}

}  // namespace
}  // namespace stele::media
