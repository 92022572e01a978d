// The overlay: what is read through it, and what happens to locks and heap changes of deferred
// commits.
#include <gtest/gtest.h>
#include <tx/transaction/overlay.h>

#include <array>

namespace stele::detail {
namespace {

class overlay_test : public ::testing::Test {
 protected:
  // Defers a commit that stores `bits` to the bytes of `mask` of the word at `offset`.
  void defer(std::uint64_t txid, std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
    const std::uint64_t line = offset / line_size * line_size;
    tx_.begin(true, false);
    tx_.take();
    if (locks_[line / line_size] != (1u << 1 | 1)) tx_.acquire(line);
    written_line& own = writes_.add(line);
    own.words[offset % line_size / 8] = bits;
    own.mask = std::uint64_t{mask} << offset % line_size;
    over_.reserve(writes_, tx_, {});
    over_.defer(txid, writes_, filter_bit(line), tx_);
    writes_.clear();
    tx_.clear();
  }
  void release() {
    over_.set_stored();
    over_.release([&](storage::heap::changes& c) {
      freed_ = c.freed.size();
      c.clear();
    });
  }

  std::array<line_lock, 64> locks_{};
  std::atomic<std::uint64_t> clock_{10};
  std::atomic<unsigned> count_{0};
  snapshot tx_{{.locks = locks_.data(), .mask = locks_.size() - 1, .clock = &clock_}, 1};
  write_set writes_;
  overlay over_{count_};
  std::size_t freed_ = 0;
};

TEST_F(overlay_test, reads_stored_bytes_over_those_of_home) {
  EXPECT_EQ(over_.read_through(8, 0x1122), 0x1122u);
  defer(11, 8, 0xAA00, 0b10);
  EXPECT_EQ(over_.read_through(8, 0x1122), 0xAA22u);
  EXPECT_EQ(over_.read_through(0, 0x1122), 0x1122u) << "another word of the line";
  EXPECT_EQ(over_.read_through(72, 0x1122), 0x1122u) << "another line";
}

TEST_F(overlay_test, a_later_commit_overwrites_only_its_own_bytes) {
  defer(11, 8, 0xAABB, 0b11);
  defer(12, 8, 0xCC, 0b01);
  EXPECT_EQ(over_.read_through(8, 0), 0xAACCu);
  EXPECT_EQ(over_.lines().size(), 1u);
}

TEST_F(overlay_test, holds_the_locks_until_released_with_the_newest_version) {
  defer(11, 8, 1, 1);
  defer(12, 64, 1, 1);
  EXPECT_EQ(locks_[0], 1u << 1 | 1);
  over_.raise_version(15);
  release();
  EXPECT_EQ(locks_[0], 15u << 1);
  EXPECT_EQ(locks_[1], 15u << 1);
}

TEST_F(overlay_test, exists_from_the_first_commit_to_the_release) {
  EXPECT_FALSE(over_.exists());
  defer(11, 8, 1, 1);
  defer(12, 8, 1, 1);
  EXPECT_TRUE(over_.exists() && over_.is_deferred());
  EXPECT_EQ(count_, 1u) << "one log has one, of two commits";
  EXPECT_NE(over_.filter(), 0u);
  over_.set_stored();
  EXPECT_TRUE(over_.exists());
  EXPECT_FALSE(over_.is_deferred());
  release();
  EXPECT_FALSE(over_.exists() || over_.is_stored() || over_.filter() != 0 || !over_.empty());
  release();
  EXPECT_EQ(count_, 0u) << "a second release does nothing";
}

TEST_F(overlay_test, is_deferred_again_by_a_commit_after_it_was_stored) {
  defer(11, 8, 1, 1);
  over_.set_stored();
  defer(12, 64, 1, 1);
  EXPECT_TRUE(over_.is_deferred());
}

TEST_F(overlay_test, frees_the_blocks_of_its_commits_at_its_release) {
  over_.changes().freed.push_back({4096, 0});
  defer(11, 8, 1, 1);
  EXPECT_EQ(freed_, 0u);
  release();
  EXPECT_EQ(freed_, 1u);
}

}  // namespace
}  // namespace stele::detail
