// The library that is installed has no assertions but those of every build.
#include <base/assert.h>
#include <gtest/gtest.h>

namespace stele::testing {
namespace {

TEST(library_without_assertions, evaluates_no_condition_but_those_of_every_build) {
  int evaluated = 0;
  STELE_ASSERT(++evaluated < 0);
  STELE_ASSERT_WHOLE(++evaluated < 0);
  EXPECT_EQ(evaluated, 0);
  STELE_ASSERT_ALWAYS(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
  EXPECT_DEATH(STELE_ASSERT_ALWAYS(evaluated == 2), "assertion failed: evaluated == 2");
}

}  // namespace
}  // namespace stele::testing
