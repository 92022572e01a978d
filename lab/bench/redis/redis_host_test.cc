// Redis as the host of comparisons: its workloads leave what they must, on servers of all kinds.
#include <bench/compare.h>
#include <bench/host.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/conformance/pools.h>

namespace stele::bench {
namespace {

task of(const std::string& workload, const std::string& dir) {
  task t;
  t.host = "redis";
  t.workload = workload;
  t.parameters.keys = 500;
  t.parameters.value_size = 64;
  t.threads = 2;
  t.dir = dir;
  return t;
}

class every_redis_workload : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(all, every_redis_workload,
                         ::testing::Values("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e",
                                           "ycsb-f"));

TEST_P(every_redis_workload, leaves_what_it_must) {
  const testing::scratch_directory dir;
  const task t = of(GetParam(), dir.file(""));
  std::vector<std::unique_ptr<contender>> all;
  for (const char* mechanism : {"default", "undo"}) {
    auto made = make_on_host(t, mechanism);
    ASSERT_TRUE(made) << made.error().message;
    all.push_back(std::move(*made));
  }
  auto always = make_host_rival(t, "aof-always");
  ASSERT_TRUE(always) << always.error().message;
  all.push_back(std::move(*always));
  for (const auto& one : all) {
    SCOPED_TRACE(one->name());
    const auto ready = one->set_up();
    ASSERT_TRUE(ready) << ready.error().message;
    const auto ran = one->run(0.05);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_GT(ran->transactions, 0u);
    const auto sound = one->check();
    EXPECT_TRUE(sound) << sound.error().message;
    EXPECT_GT(one->space().space_bytes.value_or(0), 500u * 64);
  }
}

TEST(redis_host, runs_several_operations_as_one_transaction) {
  const testing::scratch_directory dir;
  task t = of("ycsb-a", dir.file(""));
  t.ops_per_tx = 5;
  auto made = make_on_host(t, "default");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->set_up());
  const auto ran = (*made)->run(0.05);
  ASSERT_TRUE(ran) << ran.error().message;
  const auto sound = (*made)->check();
  EXPECT_TRUE(sound) << sound.error().message;
}

TEST(redis_host, says_what_it_does_not_have) {
  const testing::scratch_directory dir;
  const auto why = [](const auto& made) {
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_THAT(why(make_on_host(of("rbtree", dir.file("")), "default")),
              ::testing::HasSubstr("no workload 'rbtree'; it has ycsb-a to ycsb-f"));
  EXPECT_THAT(why(make_host_rival(of("ycsb-a", dir.file("")), "wal")),
              ::testing::HasSubstr("no rival 'wal'; it has: aof-always, aof-everysec"));
  EXPECT_THAT(why(make_on_host(of("ycsb-a", dir.file("")), "nothing")),
              ::testing::HasSubstr("nothing"));
  auto unopened = make_on_host(of("ycsb-a", dir.file("")), "log_structured");
  ASSERT_TRUE(unopened);
  EXPECT_THAT((*unopened)->set_up().error().message,
              ::testing::HasSubstr("redis-server has ended"));
}

}  // namespace
}  // namespace stele::bench
