// When a checkpoint is missing, and when the next one is due.
#include <gtest/gtest.h>
#include <published/archapt/checkpoint_schedule.h>

namespace stele::detail {
namespace {

TEST(checkpoint_schedule, asks_for_none_without_an_interval) {
  checkpoint_schedule s;
  EXPECT_FALSE(s.is_missing(0));
  EXPECT_FALSE(s.is_missing(1'000'000));
  s.covers();
  EXPECT_FALSE(s.is_due(1'000'000));
}

TEST(checkpoint_schedule, asks_for_the_first_before_anything_is_covered) {
  checkpoint_schedule s;
  s.begin(100);
  EXPECT_TRUE(s.is_missing(0));
  s.made(7);
  EXPECT_FALSE(s.is_missing(106));
  EXPECT_TRUE(s.is_missing(107));
}

TEST(checkpoint_schedule, the_next_is_due_only_while_something_is_covered) {
  checkpoint_schedule s;
  s.begin(100);
  s.made(7);
  EXPECT_FALSE(s.is_due(500)) << "nothing is covered";
  s.covers();
  EXPECT_FALSE(s.is_due(106));
  EXPECT_TRUE(s.is_due(107));
  s.made(107);
  EXPECT_FALSE(s.is_due(500)) << "a checkpoint leaves nothing covered";
}

}  // namespace
}  // namespace stele::detail
