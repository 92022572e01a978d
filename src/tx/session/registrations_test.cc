// A thread has one context in each pool, and forgets those of pools that are closed.
#include <gtest/gtest.h>
#include <tx/session/registrations.h>
#include <tx/session/thread_context.h>

namespace stele::detail {
namespace {

TEST(registrations, have_one_context_for_each_pool) {
  registrations mine;
  thread_context a, b;
  EXPECT_EQ(mine.find(1), nullptr);
  mine.reserve();
  EXPECT_EQ(mine.add(1, a).context, &a);
  mine.add(2, b);
  ASSERT_NE(mine.find(1), nullptr);
  EXPECT_EQ(mine.find(1)->context, &a);
  EXPECT_EQ(mine.find(2)->context, &b);
  EXPECT_EQ(mine.find(3), nullptr);
}

TEST(registrations, of_closed_pools_go_when_there_are_many) {
  registrations mine;
  thread_context v;
  std::uint64_t id = 0;
  while (!mine.are_many()) mine.add(++id, v);
  mine.erase_closed([&](std::uint64_t of) { return of != id; });
  EXPECT_FALSE(mine.are_many());
  EXPECT_EQ(std::distance(mine.begin(), mine.end()), 1);
  EXPECT_NE(mine.find(id), nullptr);
}

}  // namespace
}  // namespace stele::detail
