// Redis as the host of comparisons: its workloads leave what they must, on servers of all kinds.
#include <bench/compare.h>
#include <bench/host.h>
#include <bench/redis/server.h>
#include <bench/redis/tpcc.h>
#include <bench/targets.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
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
                                           "ycsb-f", "tpcc", "linkbench"));

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
  for (const char* workload : {"ycsb-a", "tpcc"}) {
    task t = of(workload, dir.file(""));
    t.ops_per_tx = 5;
    auto made = make_on_host(t, "default");
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE((*made)->set_up());
    const auto ran = (*made)->run(0.05);
    ASSERT_TRUE(ran) << ran.error().message;
    const auto sound = (*made)->check();
    EXPECT_TRUE(sound) << sound.error().message;
  }
}

// A server without persistence, after some operations by one session.
class after_operations {
 public:
  after_operations(const std::string& folder, redis::redis_workload& content,
                   const std::string& workload, const workloads::parameters& p) {
    auto started = redis::server::start(folder, {});
    if (!started) return;
    server_ = std::move(*started);
    if (auto to = redis::connection::open(server_->socket())) to_ = std::move(*to);
    const auto draws = workloads::make_workload(workload, p);
    if (to_ == nullptr || !draws || !content.fill(*to_)) return;
    const auto session = content.make_session(to_);
    base::rng random(1);
    for (int i = 0; i < 400; ++i) {
      const auto op = (*draws)->draw(random);
      if (const auto done = session->apply({&op, 1}); !done) return;
    }
    complete = true;
  }
  bool complete = false;
  redis::connection& to() { return *to_; }

 private:
  std::unique_ptr<redis::server> server_;
  std::shared_ptr<redis::connection> to_;
};

constexpr workloads::parameters small{.value_size = 64, .keys = 500};

struct damage {
  const char* workload;
  std::vector<std::string_view> command;
  const char* finding;
};

TEST(redis_checks, find_damage) {
  const testing::scratch_directory dir;
  for (const damage& d : std::initializer_list<damage>{
           {"ycsb-a", {"DEL", "user000000000007"}, "keys, not 500"},
           {"linkbench", {"HDEL", "n:3", "data"}, "node 3"},
           {"linkbench", {"HINCRBY", "c:30", "1", "1"}, "a count differs"},
           {"tpcc", {"HINCRBY", "w:0", "ytd", "1"}, "condition 1"},
           {"tpcc", {"HINCRBY", "d:0:1", "next_order", "1"}, "condition"},
           {"tpcc", {"HINCRBY", "d:0:1", "next_order", "-1"}, "condition 2"},
           {"tpcc", {"HDEL", "d:0:1", "ytd"}, "condition 9"},
           {"tpcc", {"HSET", "n:0:1", "100000", "1"}, "condition 2"},
           {"tpcc", {"HINCRBY", "d:0:1", "next_delivery", "-1"}, "condition 3"},
           {"tpcc", {"DEL", "l:0:1:1:0"}, "condition 4"},
           {"tpcc", {"HDEL", "o:0:1:1", "carrier"}, "condition 5"},
           {"tpcc", {"HINCRBY", "c:0:1:1", "balance", "1"}, "condition 12"},
           {"tpcc", {"HINCRBY", "s:0:1", "orders", "1"}, "other lines"},
           {"tpcc", {"DEL", "h:0:1:1"}, "Redis answers"}}) {
    SCOPED_TRACE(fmt::format("{} {}", d.workload, fmt::join(d.command, " ")));
    auto content = redis::make_redis_workload(d.workload, small);
    ASSERT_TRUE(content);
    after_operations run(dir.file("server"), **content, d.workload, small);
    ASSERT_TRUE(run.complete);
    const auto sound = (*content)->check(run.to());
    ASSERT_TRUE(sound) << sound.error().message;
    ASSERT_TRUE(run.to().run(d.command));
    const auto found = (*content)->check(run.to());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::corrupt);
    EXPECT_THAT(found.error().message, ::testing::HasSubstr(d.finding));
  }
}

struct planted {
  std::string redis::tpcc_scripts::* script;
  const char *right, *wrong, *finding;
};

// Scripts that lose some of their updates: the checks see it.
TEST(redis_checks, see_a_lost_update_of_a_script) {
  const testing::scratch_directory dir;
  using scripts = redis::tpcc_scripts;
  for (const planted& p : std::initializer_list<planted>{
           {&scripts::payment, "redis.call('HINCRBY', 'w:' .. ARGV[1], 'ytd', amount)",
            "redis.call('HINCRBY', 'w:' .. ARGV[1], 'ytd', amount % 2 * amount)", "condition 1"},
           {&scripts::payment, "'payments', row[3] + 1", "'payments', math.min(row[3] + 1, 3)",
            "count other payments"},
           {&scripts::new_order, "row[3] + 1", "row[3] + (ARGV[3] % 2)", "other lines"},
           {&scripts::delivery, "redis.call('HINCRBY', customer, 'balance', sum)", "",
            "condition 12"}}) {
    scripts all;
    std::string& text = all.*p.script;
    const auto at = text.find(p.right);
    ASSERT_NE(at, std::string::npos) << p.right;
    text.replace(at, std::string_view(p.right).size(), p.wrong);
    const auto content = redis::make_tpcc_with(small, all);
    after_operations run(dir.file("server"), *content, "tpcc", small);
    ASSERT_TRUE(run.complete) << p.wrong;
    const auto found = content->check(run.to());
    ASSERT_FALSE(found) << p.wrong;
    EXPECT_THAT(found.error().message, ::testing::HasSubstr(p.finding));
  }
}

TEST(redis_host, says_what_it_does_not_have) {
  const testing::scratch_directory dir;
  const auto why = [](const auto& made) {
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_THAT(why(make_on_host(of("rbtree", dir.file("")), "default")),
              ::testing::HasSubstr("no workload 'rbtree'; it has ycsb-a, ycsb-b"));
  EXPECT_THAT(why(make_host_rival(of("ycsb-a", dir.file("")), "wal")),
              ::testing::HasSubstr("no rival 'wal'; it has: aof-always, aof-everysec"));
  EXPECT_THAT(why(make_on_host(of("ycsb-a", dir.file("")), "nothing")),
              ::testing::HasSubstr("nothing"));
  auto unopened = make_on_host(of("ycsb-a", dir.file("")), "log_structured");
  ASSERT_TRUE(unopened);
  EXPECT_THAT((*unopened)->set_up().error().message,
              ::testing::HasSubstr("redis-server has ended"));
}

// The marks are told, whatever they are; the command ends well when everything was measured.
TEST(redis_host, measures_its_figures) {
  const testing::scratch_directory dir;
  target_options o;
  o.dir = dir.file("memory"), o.file_dir = dir.file("device");
  std::filesystem::create_directory(o.dir);
  std::filesystem::create_directory(o.file_dir);
  o.keys = 1000, o.operations = 8000;
  o.runs = 1, o.seconds = 0.02;
  const auto measured = measure_redis_targets(o);
  ASSERT_TRUE(measured) << measured.error().message;
  std::vector<std::string> names;
  for (const performance_target& t : *measured) {
    names.push_back(t.what);
    EXPECT_GT(t.measured, 0) << t.what;
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"ycsb-a, 50 clients, memory, over none", "restart",
                          "restart, AOF over pool", "full sync of a replica, over plain Redis",
                          "the pool's own space", "growth of the pool, end over a quarter"}));
  EXPECT_TRUE(std::filesystem::is_empty(o.dir));
  EXPECT_TRUE(std::filesystem::is_empty(o.file_dir));
}

}  // namespace
}  // namespace stele::bench
