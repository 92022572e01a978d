// The snapshot of a transaction on a lock table and a clock of the test: what it sees as torn or
// changed, and what it leaves in the locks.
#include <gtest/gtest.h>
#include <tx/fast_paths.h>

#include <array>

namespace stele::detail {
namespace {

class snapshot_test : public ::testing::Test {
 protected:
  static constexpr std::uint64_t a = 0, b = line_size;  // two lines with two locks
  static constexpr std::uint64_t held_by_other = 7 << 1 | 1;

  void begin(bool records = true, bool fast = false) {
    tx_.begin(records, fast);
    tx_.take();
  }
  // Whether one try and the whole loop read `line` without a restart.
  bool try_read(std::uint64_t line) {
    return tx_.try_read(line, [] {});
  }
  bool reads(std::uint64_t line) {
    return !throws([&] { tx_.read_consistently(line, [] {}); });
  }
  template <class Work>
  static bool throws(Work&& work) {
    try {
      work();
      return false;
    } catch (const conflict&) {
      return true;
    }
  }
  // Another transaction commits to a line.
  void commit(std::uint64_t line) { lock_of(line) = ++clock_ << 1; }
  line_lock& lock_of(std::uint64_t line) { return locks_[line / line_size % locks_.size()]; }

  std::array<line_lock, 64> locks_{};
  std::atomic<std::uint64_t> clock_{10};
  snapshot tx_{{.locks = locks_.data(), .mask = locks_.size() - 1, .clock = &clock_}, 3};
};

TEST_F(snapshot_test, is_in_force_only_with_a_lock_table) {
  EXPECT_TRUE(tx_.in_force());
  EXPECT_FALSE(snapshot({.clock = &clock_}, 3).in_force());
}

TEST_F(snapshot_test, is_not_in_force_for_an_attempt_that_runs_alone) {
  tx_.begin_alone();
  EXPECT_TRUE(tx_.has_locks());
  EXPECT_FALSE(tx_.in_force());
  begin();
  EXPECT_TRUE(tx_.in_force());
}

TEST_F(snapshot_test, locks_alone_only_for_other_processes) {
  tx_.begin_alone();
  EXPECT_FALSE(tx_.locks_for_others());
  tx_.use({.locks = locks_.data(), .mask = locks_.size() - 1, .clock = &clock_, .shared = true});
  EXPECT_TRUE(tx_.locks_for_others());
  begin();
  EXPECT_FALSE(tx_.locks_for_others());
}

TEST_F(snapshot_test, alone_locks_a_line_whatever_its_version_and_once) {
  commit(a);
  const std::uint64_t version = lock_of(a);
  tx_.begin_alone();
  tx_.lock_alone(a);
  tx_.lock_alone(a + line_size * locks_.size());  // has the same lock
  EXPECT_EQ(lock_of(a), 3u << 1 | 1);
  EXPECT_EQ(tx_.held_locks(), 1u);
  tx_.release_unchanged();
  EXPECT_EQ(lock_of(a), version);
}

// Else it would load its own stores from home.
TEST_F(snapshot_test, copies_nothing_alone_whatever_the_attempt_before_was) {
  alignas(16) std::array<std::byte, line_size> home{}, to{};
  begin(false, true);
  ASSERT_TRUE(tx_.try_copy(home.data(), 0, to.data(), to.size()));
  tx_.clear();
  tx_.begin_alone();
  EXPECT_FALSE(tx_.try_copy(home.data(), 0, to.data(), to.size()));
}

TEST_F(snapshot_test, extends_alone_whatever_the_attempt_before_has_read) {
  begin(false);
  ASSERT_TRUE(reads(a));
  tx_.clear();
  tx_.begin_alone();
  commit(a);
  EXPECT_FALSE(throws([&] { tx_.extend(); }));
}

TEST_F(snapshot_test, one_try_acquires_a_free_lock_and_no_other) {
  begin();
  EXPECT_FALSE(tx_.try_acquire(a)) << "no room for the entry: acquire() makes it";
  tx_.acquire(a);
  tx_.release_unchanged();
  tx_.clear();
  begin();
  lock_of(b) = held_by_other;
  EXPECT_FALSE(tx_.try_acquire(b));
  commit(b);
  EXPECT_FALSE(tx_.try_acquire(b)) << "newer than the snapshot";
  EXPECT_FALSE(tx_.holds_locks());
  EXPECT_TRUE(tx_.try_acquire(a));
  EXPECT_EQ(lock_of(a), 3u << 1 | 1);
  EXPECT_EQ(tx_.held_locks(), 1u);
}

TEST_F(snapshot_test, one_try_fails_on_a_line_that_is_locked_or_too_new) {
  begin(false);
  EXPECT_TRUE(try_read(a));
  lock_of(b) = held_by_other;
  EXPECT_FALSE(try_read(b));
  commit(b);
  EXPECT_FALSE(try_read(b)) << "newer than the snapshot";
}

TEST_F(snapshot_test, one_try_fails_when_the_line_changes_while_it_is_read) {
  begin(false);
  EXPECT_FALSE(tx_.try_read(a, [&] { lock_of(a) = 4 << 1; }));
}

TEST_F(snapshot_test, reads_again_until_the_line_stays_as_it_was) {
  begin();
  int times = 0;
  tx_.read_consistently(a, [&] {
    if (++times < 3) lock_of(a) = std::uint64_t(times) << 1;
  });
  EXPECT_EQ(times, 3);
}

TEST_F(snapshot_test, ends_the_attempt_on_a_lock_that_stays_held) {
  begin();
  lock_of(a) = held_by_other;
  EXPECT_FALSE(reads(a));
  EXPECT_TRUE(throws([&] { tx_.acquire(a); }));
  EXPECT_FALSE(tx_.holds_locks());
}

TEST_F(snapshot_test, extends_to_a_newer_line_when_nothing_read_has_changed) {
  begin();
  ASSERT_TRUE(reads(a));
  commit(b);
  EXPECT_TRUE(reads(b));
  EXPECT_EQ(tx_.time(), 11u);
}

TEST_F(snapshot_test, restarts_when_a_newer_line_would_not_fit_what_was_read) {
  begin();
  ASSERT_TRUE(reads(a));
  commit(a);
  commit(b);
  EXPECT_FALSE(tx_.valid());
  EXPECT_FALSE(reads(b));
}

TEST_F(snapshot_test, cannot_extend_over_reads_that_left_no_entry) {
  begin(false);
  ASSERT_TRUE(reads(a));
  commit(b);
  EXPECT_FALSE(reads(b)) << "the line read may have changed";
  begin(false);
  EXPECT_TRUE(reads(b)) << "a new attempt has read nothing";
}

TEST_F(snapshot_test, an_own_lock_is_readable_and_valid) {
  begin();
  ASSERT_TRUE(reads(a));
  tx_.acquire(a);
  EXPECT_EQ(lock_of(a), 3u << 1 | 1);
  EXPECT_TRUE(reads(a));
  EXPECT_TRUE(tx_.valid());
  tx_.acquire(a);
  EXPECT_EQ(tx_.held_locks(), 1u) << "acquired once";
}

TEST_F(snapshot_test, gives_locks_the_commit_s_version_or_the_former_one) {
  lock_of(a) = 5 << 1;
  begin();
  tx_.acquire(a);
  tx_.release_unchanged();
  EXPECT_EQ(lock_of(a), 5u << 1);
  tx_.clear();
  begin();
  tx_.acquire(a);
  tx_.age_locks(8);
  tx_.release_unchanged();
  EXPECT_EQ(lock_of(a), 8u << 1) << "others may have seen what was rolled back";
  tx_.clear();
  begin();
  tx_.acquire(a);
  tx_.release(9);
  EXPECT_EQ(lock_of(a), 9u << 1);
}

TEST_F(snapshot_test, keeps_locks_held_that_it_hands_over) {
  begin();
  tx_.acquire(a);
  std::vector<snapshot::entry> to;
  tx_.hand_over_locks(to);
  tx_.release_unchanged();
  EXPECT_EQ(lock_of(a), 3u << 1 | 1);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(to[0].lock, &lock_of(a));
}

TEST_F(snapshot_test, copies_lines_of_its_state_and_no_other) {
  alignas(64) std::array<std::byte, 2 * line_size> home, copy{};
  home.fill(std::byte{1});
  begin(false, true);
  EXPECT_TRUE(tx_.try_copy(home.data(), 16, copy.data() + 16, home.size() - 32));
  EXPECT_EQ(copy[16], std::byte{1});
  EXPECT_EQ(copy[home.size() - 17], std::byte{1});
  EXPECT_FALSE(tx_.try_copy(home.data(), 8, copy.data(), 16)) << "not in pairs of words";
  commit(b);
  EXPECT_TRUE(tx_.try_copy(home.data(), 0, copy.data(), line_size));
  EXPECT_FALSE(tx_.try_copy(home.data(), 0, copy.data(), 2 * line_size)) << "a line is newer";
  begin(true, true);
  EXPECT_FALSE(tx_.try_copy(home.data(), 0, copy.data(), line_size)) << "its reads are recorded";
}

}  // namespace
}  // namespace stele::detail
