// Assertions of each grade end the program, and only where their condition is false.
#include <base/assert.h>

#include <gtest/gtest.h>

namespace stele::base {
namespace {

TEST(Assert, TestsAreBuiltWithAssertions) {
  EXPECT_EQ(STELE_ASSERTIONS, 2);
}

TEST(Assert, EachGradeEndsTheProgramWithItsConditionAndPlace) {
  const int heads = 3, tails = 2;
  EXPECT_DEATH(STELE_ASSERT_ALWAYS(heads <= tails),
               "stele: assertion failed: heads <= tails \\(.*assert_test.cc:[0-9]+\\)");
  EXPECT_DEATH(STELE_ASSERT(heads <= tails), "assertion failed: heads <= tails");
  EXPECT_DEATH(STELE_ASSERT_WHOLE(heads <= tails), "assertion failed: heads <= tails");
}

TEST(Assert, ATrueConditionIsEvaluatedOnce) {
  int evaluated = 0;
  STELE_ASSERT(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(Assert, TakesConditionsWithCommas) {
  struct pair {
    int a, b;
  };
  STELE_ASSERT(pair{1, 2}.b == 2);
}

}  // namespace
}  // namespace stele::base
