// The stages of a start, and the units of what is loaded.
#include <adapters/redis/load_state.h>

#include <gtest/gtest.h>

namespace stele::redis {
namespace {

TEST(RedisStartup, AnUnusedPoolTakesFiles) {
  startup s;
  s.begin(false);
  s.note_load();
  EXPECT_FALSE(s.ignores_files());
  EXPECT_FALSE(s.has_ignored_files());
  s.open();
  EXPECT_TRUE(s.is_open());
}

TEST(RedisStartup, AUsedPoolIgnoresFilesUntilItIsOpen) {
  startup s;
  s.begin(true);
  EXPECT_TRUE(s.ignores_files());
  EXPECT_FALSE(s.has_ignored_files());
  s.note_load();
  EXPECT_TRUE(s.ignores_files());
  EXPECT_TRUE(s.has_ignored_files());
  s.open();
  s.note_load();  // a full sync, or DEBUG RELOAD
  EXPECT_FALSE(s.ignores_files());
  EXPECT_FALSE(s.has_ignored_files());
  EXPECT_DEATH(s.open(), "is_open");
}

TEST(RedisLoad, AFileIsLoadedInUnitsOfManyValues) {
  load_state load;
  load.begin_file(false);
  EXPECT_TRUE(load.is_file());
  EXPECT_TRUE(load.may_end_unit());
  for (std::uint64_t i = 1; i <= 2 * load_state::values_of_unit; ++i)
    EXPECT_EQ(load.note_value(), i % load_state::values_of_unit == 0);
  EXPECT_TRUE(load.end_file());
  EXPECT_FALSE(load.is_file());
  EXPECT_EQ(load.values(), 2 * load_state::values_of_unit);
  EXPECT_FALSE(load.note_value());
  EXPECT_EQ(load.values(), 2 * load_state::values_of_unit);
}

TEST(RedisLoad, AFileWithinAnExecIsInTheUnitOfTheExec) {
  load_state load;
  load.begin_file(true);
  EXPECT_TRUE(load.is_file());
  EXPECT_FALSE(load.may_end_unit());
  for (std::uint64_t i = 0; i < 2 * load_state::values_of_unit; ++i)
    EXPECT_FALSE(load.note_value());
  EXPECT_FALSE(load.end_file());
  EXPECT_FALSE(load.is_file());
}

TEST(RedisLoad, OnlyARestoreThatBeginsItsUnitMayEndIt) {
  load_state load;
  EXPECT_FALSE(load.may_end_unit());
  {
    const load_state::restored first(load, true);
    EXPECT_TRUE(load.may_end_unit());
    EXPECT_FALSE(load.note_value());
  }
  EXPECT_FALSE(load.may_end_unit());
  const load_state::restored later(load, false);
  EXPECT_FALSE(load.may_end_unit());
}

TEST(RedisLoad, ARestoreWithinAnAofIsInTheUnitsOfTheFile) {
  load_state load;
  load.begin_file(false);
  {
    const load_state::restored value(load, true);
    EXPECT_TRUE(load.is_file());
    EXPECT_TRUE(load.may_end_unit());
  }
  EXPECT_TRUE(load.end_file());
}

TEST(RedisLoad, ARefusalIsTakenOnce) {
  load_state load;
  load.refuse({errc::full, "no room"});
  const auto why = load.take_refusal();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, errc::full);
  EXPECT_FALSE(load.take_refusal());
}

TEST(RedisLoad, KeysOfAPlainServerAreTakenOnce) {
  load_state load;
  load.note_foreign(3, "slot");
  const auto keys = load.take_foreign();
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].database, 3);
  EXPECT_EQ(keys[0].name, "slot");
  EXPECT_TRUE(load.take_foreign().empty());
}

TEST(RedisLoad, AnItemIsUnclaimedUntilAKeyHasIt) {
  std::uint64_t memory[2] = {};
  const auto item = [&](int i) { return reinterpret_cast<stored_item*>(&memory[i]); };
  unclaimed_item unclaimed;
  unclaimed.set(item(0));
  EXPECT_FALSE(unclaimed.take(item(1)));
  EXPECT_TRUE(unclaimed.take(item(0)));
  EXPECT_FALSE(unclaimed.take(item(0)));
  unclaimed.set(item(1));
  unclaimed.claim();
  EXPECT_FALSE(unclaimed.take(item(1)));
}

}  // namespace
}  // namespace stele::redis
