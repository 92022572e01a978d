// The undo log of volatile memory: exact bytes come back, newest first, and levels can be dropped.
#include <gtest/gtest.h>
#include <tx/transaction/volatile_undo.h>

#include <array>
#include <cstring>

namespace stele::detail {
namespace {

class volatile_undo_test : public ::testing::Test {
 protected:
  std::uintptr_t at(std::size_t i) const {
    return reinterpret_cast<std::uintptr_t>(bytes_.data() + i);
  }
  void store(std::size_t i, std::size_t size, char with) {
    undo_.append(at(i), size);
    std::memset(bytes_.data() + i, with, size);
  }

  alignas(8) std::array<char, 33> bytes_{"abcdefghijklmnopqrstuvwxyz012345"};
  volatile_undo_log undo_;
};

TEST_F(volatile_undo_test, restores_bytes_that_cross_words_and_no_others) {
  store(5, 14, '-');
  bytes_[4] = '!';
  bytes_[19] = '?';
  undo_.roll_back_to(0);
  EXPECT_STREQ(bytes_.data(), "abcd!fghijklmnopqrs?uvwxyz012345");
  EXPECT_TRUE(undo_.empty());
}

TEST_F(volatile_undo_test, restores_what_was_there_first) {
  store(0, 4, '1');
  store(2, 4, '2');
  undo_.roll_back_to(0);
  EXPECT_STREQ(bytes_.data(), "abcdefghijklmnopqrstuvwxyz012345");
}

TEST_F(volatile_undo_test, rolls_a_level_back_and_keeps_the_one_below) {
  store(0, 8, '1');
  const std::size_t below = undo_.entries.size();
  store(0, 8, '2');
  undo_.roll_back_to(below);
  EXPECT_STREQ(bytes_.data(), "11111111ijklmnopqrstuvwxyz012345");
  EXPECT_EQ(undo_.entries.size(), below);
}

TEST_F(volatile_undo_test, drops_the_entries_of_a_range_above_a_level) {
  store(0, 8, '1');
  const std::size_t below = undo_.entries.size();
  store(8, 8, '2');
  store(16, 8, '3');
  undo_.discard(below, at(0), at(16));
  undo_.roll_back_to(0);
  EXPECT_STREQ(bytes_.data(), "abcdefgh22222222qrstuvwxyz012345");
}

TEST_F(volatile_undo_test, is_not_empty_while_lines_are_locked) {
  undo_.locked = true;
  EXPECT_FALSE(undo_.empty());
  undo_.clear();
  EXPECT_TRUE(undo_.empty());
}

}  // namespace
}  // namespace stele::detail
