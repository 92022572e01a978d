// Which commands the filter leaves to Redis, and when rights are asked for.
#include <adapters/redis/filter_state.h>

#include <gtest/gtest.h>

namespace stele::redis {
namespace {

TEST(RedisFilterBypass, HoldsForOneCommand) {
  filter_bypass bypass;
  EXPECT_FALSE(bypass.take());
  const filter_bypass::scope call(bypass);
  EXPECT_TRUE(bypass.take());
  EXPECT_FALSE(bypass.take()) << "what the called command calls is filtered";
}

TEST(RedisFilterBypass, EndsWithACallThatIsNotFiltered) {
  filter_bypass bypass;
  {
    const filter_bypass::scope refused(bypass);
  }
  EXPECT_FALSE(bypass.take());
}

TEST(RedisFilterBypass, IsNotBegunTwice) {
  filter_bypass bypass;
  const filter_bypass::scope call(bypass);
  EXPECT_DEATH((filter_bypass::scope{bypass}), "is_next_");
}

TEST(RedisRights, AreAskedForOnceUsersMayHaveChanged) {
  rights_cache rights;
  EXPECT_FALSE(rights.is_known());
  EXPECT_FALSE(rights.is_restricted());
  rights.set(true);
  EXPECT_FALSE(rights.is_restricted());
  EXPECT_TRUE(rights.all_may_all());
  rights.restrict();
  EXPECT_TRUE(rights.is_known());
  EXPECT_FALSE(rights.all_may_all());
}

TEST(RedisRights, ThatChangeBeforeTheFirstCommandAreAskedFor) {
  rights_cache rights;
  rights.restrict();
  EXPECT_TRUE(rights.is_known());
  EXPECT_FALSE(rights.all_may_all());
}

TEST(RedisRights, OfSeveralUsersAreAskedFor) {
  rights_cache rights;
  rights.set(false);
  EXPECT_TRUE(rights.is_restricted());
  EXPECT_FALSE(rights.all_may_all());
}

}  // namespace
}  // namespace stele::redis
