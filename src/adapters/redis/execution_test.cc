// The stack of commands in progress, and which of them may run again.
#include <adapters/redis/execution.h>

#include <gtest/gtest.h>

namespace stele::redis {
namespace {

using client = execution::client;
using full_pool = execution::full_pool;

TEST(RedisExecution, IdleMayBlockAndNotesNothing) {
  executions all;
  EXPECT_TRUE(all.is_idle());
  EXPECT_TRUE(all.may_block());
  all.note_side_effect();  // of an event of the server
  EXPECT_TRUE(all.is_idle());
}

TEST(RedisExecution, CommandsOfAScriptEndBeforeIt) {
  executions all;
  execution script(all, client::may_block, full_pool::may_retry);
  {
    const execution command(all, client::may_block, full_pool::may_retry);
    EXPECT_EQ(all.current(), &command);
    EXPECT_TRUE(command.may_retry());
  }
  EXPECT_EQ(all.current(), &script);
  EXPECT_FALSE(script.may_retry()) << "a part of it has run";
}

TEST(RedisExecution, SideEffectsAreTheInnermostCommands) {
  executions all;
  const execution script(all, client::may_block, full_pool::may_retry);
  {
    const execution command(all, client::may_block, full_pool::may_retry);
    all.note_side_effect();
    EXPECT_TRUE(command.has_side_effects());
  }
  EXPECT_FALSE(script.has_side_effects());
}

TEST(RedisExecution, AClientThatWasBlockedIsNotBlockedAgainByACommandWithin) {
  executions all;
  {
    const execution serving(all, client::was_blocked, full_pool::is_answered);
    EXPECT_FALSE(all.may_block());
    const execution command(all, client::may_block, full_pool::may_retry);
    EXPECT_FALSE(all.may_block());
  }
  EXPECT_TRUE(all.may_block());
}

TEST(RedisExecution, RetriesUntilNothingMoreIsEvicted) {
  executions all;
  execution command(all, client::may_block, full_pool::may_retry);
  for (int i = 0; i < 3; ++i) {
    command.request_retry();
    EXPECT_TRUE(command.retry_requested());
    command.begin_retry();
    EXPECT_FALSE(command.may_retry());
    command.allow_retry();
    EXPECT_TRUE(command.may_retry());
  }
  command.request_retry();
  command.begin_retry();
  EXPECT_FALSE(command.may_retry());
  EXPECT_DEATH(command.request_retry(), "may_retry");
}

TEST(RedisExecution, AFailedCommandIsNotRunAgain) {
  executions all;
  execution command(all, client::may_block, full_pool::may_retry);
  command.request_retry();
  command.end_retries();
  EXPECT_FALSE(command.retry_requested());
  EXPECT_FALSE(command.may_retry());
}

TEST(RedisExecution, ARequestedRetryRunsNothingFirst) {
  executions all;
  execution command(all, client::may_block, full_pool::may_retry);
  command.request_retry();
  EXPECT_DEATH(execution(all, client::may_block, full_pool::may_retry), "retry_requested");
}

}  // namespace
}  // namespace stele::redis
