// A pool's own locks come back into use when other processes read it no more.
#include <gtest/gtest.h>
#include <tx/session/lock_tables.h>

namespace stele::detail {
namespace {

TEST(lock_tables, a_policy_without_locks_has_an_empty_table) {
  const std::atomic<std::uint64_t> clock{5};
  const lock_tables none(0, clock);
  EXPECT_EQ(none.in_use().locks, nullptr);
  EXPECT_EQ(none.own().mask, 0u);
  EXPECT_EQ(none.own().clock, &clock);
}

TEST(lock_tables, the_mask_names_each_own_lock) {
  const std::atomic<std::uint64_t> clock{5};
  const lock_tables locks(1 << 20, clock);
  EXPECT_EQ(locks.own().mask + 1, line_lock_count(1 << 20));
  EXPECT_NE(locks.own().locks, nullptr);
  EXPECT_EQ(locks.in_use().locks, locks.own().locks);
  EXPECT_FALSE(locks.in_use().shared);
}

TEST(lock_tables, a_shared_table_replaces_the_own_one_until_that_is_used_again) {
  const std::atomic<std::uint64_t> clock{5}, theirs{7};
  lock_tables locks(1 << 20, clock);
  line_lock shared[2]{};
  locks.use({.locks = shared, .mask = 1, .clock = &theirs, .shared = true});
  EXPECT_EQ(locks.in_use().locks, shared);
  EXPECT_NE(locks.own().locks, shared);
  locks.use(locks.own());
  EXPECT_EQ(locks.in_use().clock, &clock);
}

}  // namespace
}  // namespace stele::detail
