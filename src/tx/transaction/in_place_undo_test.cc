// Stores in place and their roll-back, on words of the test.
#include <gtest/gtest.h>
#include <tx/transaction/in_place_undo.h>

#include <array>

namespace stele::detail {
namespace {

class in_place_undo_test : public ::testing::Test {
 protected:
  void begin() {
    a_.pool_base = reinterpret_cast<std::uintptr_t>(home_.data());
    a_.load_size = sizeof home_;
    undo_.begin(a_, sizeof home_);
  }
  void store(std::uint64_t offset, std::uint64_t value, std::size_t size = 8) {
    undo_.store(a_, offset, &value, size);
  }

  alignas(64) std::array<std::uint64_t, 1024> home_{};
  access a_;
  in_place_undo undo_;
};

TEST_F(in_place_undo_test, loads_are_direct_and_stores_go_home_while_it_runs) {
  begin();
  EXPECT_EQ(a_.load_size, 0u);
  EXPECT_EQ(a_.in_place_size, sizeof home_);
  store(8, 5);
  EXPECT_EQ(home_[1], 5u);
  in_place_undo::end(a_);
  EXPECT_EQ(a_.in_place_size, 0u);
}

TEST_F(in_place_undo_test, restores_the_oldest_word_where_stores_overlap) {
  home_[1] = 0x1111;
  begin();
  store(8, 0x22, 1);
  store(8, 3);
  store(9, 0x44, 1);
  undo_.undo(a_);
  EXPECT_EQ(home_[1], 0x1111u);
}

TEST_F(in_place_undo_test, keeps_every_word_when_its_buffer_grows) {
  begin();
  for (std::uint64_t i = 0; i < 1000; ++i) store(8 * i, i + 1);
  undo_.undo(a_);
  for (const std::uint64_t word : home_) EXPECT_EQ(word, 0u);
}

TEST_F(in_place_undo_test, counts_the_bytes_and_forgets_them_at_the_next_begin) {
  begin();
  EXPECT_TRUE(undo_.empty(a_));
  store(8, 1);
  store(20, 1, 4);
  EXPECT_FALSE(undo_.empty(a_));
  EXPECT_EQ(undo_.stored_bytes(a_), 12u);
  begin();
  EXPECT_TRUE(undo_.empty(a_));
  EXPECT_EQ(undo_.stored_bytes(a_), 0u);
}

}  // namespace
}  // namespace stele::detail
