// A thread gets the bias when it has earned it and no other runs, and loses it to the next one.
#include <gtest/gtest.h>
#include <tx/session/bias.h>

#include <thread>

namespace stele::detail {
namespace {

constexpr auto no_others_run = [] { return false; };

TEST(bias, is_granted_only_while_no_other_thread_runs) {
  bias lock;
  thread_context v;
  lock.grant(v, [] { return true; });
  EXPECT_EQ(lock.look(), nullptr);
  lock.grant(v, [&] {
    EXPECT_EQ(lock.look(), &v) << "others see the bias before they are looked for";
    return false;
  });
  EXPECT_TRUE(lock.is_of(v));
}

TEST(bias, takes_twice_as_many_lone_commits_after_each_revocation) {
  bias lock;
  thread_context v, other;
  v.lone_commits = bias::threshold - 1;
  EXPECT_FALSE(lock.is_earned_by(v));
  v.count_lone_commit(true);
  EXPECT_TRUE(lock.is_earned_by(v));
  lock.grant(v, no_others_run);
  EXPECT_EQ(v.lone_commits, 0u);
  lock.revoke(other);
  EXPECT_EQ(lock.look(), nullptr);
  v.lone_commits = 2 * bias::threshold - 1;
  EXPECT_FALSE(lock.is_earned_by(v));
  v.count_lone_commit(true);
  EXPECT_TRUE(lock.is_earned_by(v));
  v.count_lone_commit(false);
  EXPECT_FALSE(lock.is_earned_by(v));
}

TEST(bias, a_revocation_waits_for_the_transaction_of_the_thread_that_has_it) {
  bias lock;
  thread_context v, other;
  lock.grant(v, no_others_run);
  v.in_transaction.announce(true);
  std::atomic<bool> done{false};
  std::jthread revoking([&] {
    lock.revoke(other);
    done = true;
  });
  while (lock.look() == &v) std::this_thread::yield();
  EXPECT_NE(lock.look(), nullptr) << "whoever begins meanwhile waits too";
  EXPECT_FALSE(done);
  v.in_transaction.withdraw();
  revoking.join();
  EXPECT_EQ(lock.look(), nullptr);
}

TEST(bias, is_given_up_and_forgotten_by_its_thread_alone) {
  bias lock;
  thread_context v, other;
  lock.give(v);
  lock.give_up(other);
  lock.forget(other);
  lock.revoke(v);
  EXPECT_TRUE(lock.is_of(v));
  lock.give_up(v);
  EXPECT_EQ(lock.look(), nullptr);
  lock.give(v);
  lock.forget(v);
  EXPECT_EQ(lock.look(), nullptr);
}

}  // namespace
}  // namespace stele::detail
