// What is known for one turn of the server's event loop, and what is kept over turns.
#include <adapters/redis/event_loop.h>

#include <gtest/gtest.h>

namespace stele::redis {
namespace {

TEST(RedisEventLoop, ADrainedClientIsKnownForATurn) {
  event_loop loop;
  loop.begin_turn();
  EXPECT_FALSE(loop.is_drained(7));
  loop.note_drained(7);
  EXPECT_TRUE(loop.is_drained(7));
  EXPECT_FALSE(loop.is_drained(8));
  loop.end_turn();
  EXPECT_FALSE(loop.is_drained(7));
  loop.note_drained(7);
  loop.begin_turn();
  EXPECT_FALSE(loop.is_drained(7));
}

TEST(RedisEventLoop, IsAsleepBetweenTheHooks) {
  event_loop loop;
  EXPECT_FALSE(loop.is_asleep()) << "a module is loaded before the first turn";
  loop.end_turn();
  EXPECT_TRUE(loop.is_asleep());
  loop.begin_turn();
  EXPECT_FALSE(loop.is_asleep());
}

TEST(RedisEventLoop, AnOffsetIsDueUntilItIsTaken) {
  event_loop loop;
  EXPECT_FALSE(loop.take_offset_due());
  loop.note_offset_due();
  loop.note_offset_due();
  loop.end_turn();
  loop.begin_turn();
  EXPECT_TRUE(loop.take_offset_due());
  EXPECT_FALSE(loop.take_offset_due());
}

}  // namespace
}  // namespace stele::redis
