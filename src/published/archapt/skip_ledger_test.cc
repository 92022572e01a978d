// Skipping pays only once skipped lines are seen to stay skipped, and stops when they do not.
#include <gtest/gtest.h>
#include <published/archapt/skip_ledger.h>

namespace stele::detail {
namespace {

constexpr unsigned block_lines = 18, lines_of_matrix = 49;

void run(skip_ledger& l, unsigned truncations, unsigned skipped, unsigned later) {
  for (unsigned i = 0; i < truncations; ++i) {
    l.begin_truncation();
    l.skip(skipped);
    l.charge(later);
  }
}

TEST(skip_ledger, expects_nothing_before_lines_have_stayed_skipped) {
  skip_ledger l;
  EXPECT_FALSE(l.pays(lines_of_matrix, block_lines));
  run(l, skip_ledger::delay, 10'000, 0);
  EXPECT_FALSE(l.pays(lines_of_matrix, block_lines)) << "they may be flushed yet";
  run(l, 1, 10'000, 0);
  EXPECT_TRUE(l.pays(lines_of_matrix, block_lines));
  EXPECT_FALSE(l.pays(block_lines + skip_ledger::summing_lines, block_lines));
}

TEST(skip_ledger, counts_what_comes_later_against_it) {
  skip_ledger l;
  run(l, 40, 1000, 1000);
  EXPECT_FALSE(l.pays(lines_of_matrix, block_lines));
  run(l, 40, 1000, 100);
  EXPECT_TRUE(l.pays(lines_of_matrix, block_lines)) << "the past is forgotten";
  run(l, 40, 1000, 600);
  EXPECT_FALSE(l.pays(lines_of_matrix, block_lines)) << "four tenths of 49 are less than 26";
}

TEST(skip_ledger, takes_a_few_lines_for_nothing) {
  skip_ledger l;
  run(l, 40, 20, 0);
  EXPECT_FALSE(l.pays(lines_of_matrix, block_lines));
}

}  // namespace
}  // namespace stele::detail
