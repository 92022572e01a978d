// SQLite as host: every workload runs on every system and is sound afterwards, checks find damage,
// and what does not fit is refused by a sentence.
#include <bench/compare.h>
#include <bench/host.h>
#include <bench/sqlite/sql_workload.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace stele::bench {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> sql_workloads = {"ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d",   "ycsb-e",
                                                "ycsb-f", "tpcc",   "store",  "linkbench"};

comparison small(const std::string& workload) {
  comparison c;
  c.what.workload = workload;
  c.what.host = "sqlite";
  c.what.parameters.keys = 1000;
  c.what.parameters.value_size = 64;
  c.what.dir = testing::TempDir();
  c.runs = 2;
  c.seconds = 0.02;
  return c;
}

std::string test_name(const testing::TestParamInfo<std::string>& which) {
  std::string name = which.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class every_sql_workload : public testing::TestWithParam<std::string> {};

TEST_P(every_sql_workload, is_sound_on_every_system) {
  comparison c = small(GetParam());
  c.mechanisms = {"default"};
  c.rivals = host_rival_names("sqlite");
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  std::vector<std::string> systems;
  for (const row& x : r->rows) {
    systems.push_back(x.system);
    EXPECT_GT(x.tx_per_s.min, 0) << x.system;
  }
  EXPECT_THAT(systems, ElementsAre(":memory:", "default", "delete", "truncate", "persist",
                                   "wal-full", "wal-normal", "memory"));
  for (const std::string system : {"default", "delete", "wal-full"})
    EXPECT_GT(find_row(*r, system)->space_bytes.value(), 64'000u) << system;
  EXPECT_EQ(find_row(*r, "memory")->survives, durability_level::none);
  EXPECT_TRUE(find_row(*r, "default")->fences_per_tx);
}

TEST_P(every_sql_workload, is_sound_with_two_threads_and_many_operations) {
  comparison c = small(GetParam());
  c.mechanisms = {"redo"};
  c.rivals = {"delete", "wal-full"};
  c.what.threads = 2;
  c.what.ops_per_tx = 3;
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rows.size(), 3u);
  EXPECT_THAT(r->notes, testing::Contains(HasSubstr(":memory: is left out")));
}

INSTANTIATE_TEST_SUITE_P(all, every_sql_workload, testing::ValuesIn(sql_workloads), test_name);

TEST(host, every_mechanism_with_its_home_in_place_runs) {
  comparison c = small("tpcc");
  c.limits = false;
  c.what.threads = 2;
  c.mechanisms = {"undo", "archapt-undo", "archapt-redo"};
  for (const durability d : {durability::durable, durability::ordered}) {
    c.what.commits = d;
    const auto r = compare(c);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_GT(r->rows.front().lines_per_tx.value() + r->rows.front().fences_per_tx.value(), 1);
  }
  c.mechanisms = {"log_structured"};
  EXPECT_THAT(compare(c).error().message, HasSubstr("reads pages in place"));
}

TEST(host, blobs_may_be_large) {
  comparison c = small("store");
  c.limits = false;
  c.mechanisms = {"default"};
  c.rivals = {"truncate"};
  c.what.parameters = {.value_size = std::size_t{1} << 20, .keys = 8, .read_share = 0.5};
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
}

TEST(host, says_what_does_not_fit) {
  comparison c = small("sps");
  c.mechanisms = {"default"};
  EXPECT_THAT(compare(c).error().message, HasSubstr("the host sqlite runs ycsb-a, "));
  c = small("tpcc");
  c.mechanisms = {"default"};
  c.rivals = {"nonesuch"};
  EXPECT_THAT(compare(c).error().message, HasSubstr("it has: delete, truncate"));
  c.rivals = {};
  c.batch = 8;
  EXPECT_THAT(compare(c).error().message, HasSubstr("no calls for many items"));
  c.batch = 0;
  c.what.parameters.coalesce = true;
  EXPECT_THAT(compare(c).error().message, HasSubstr("no coalescing memory"));
  c.what.host = "nonesuch";
  EXPECT_THAT(compare(c).error().message, HasSubstr("there is no host 'nonesuch'"));
}

TEST(host, files_are_removed) {
  const fs::path dir = fs::path(testing::TempDir()) / "stele-host-files";
  fs::create_directories(dir);
  for (const std::string& rival : host_rival_names("sqlite")) {
    task t = small("ycsb-a").what;
    t.dir = dir;
    auto made = make_host_rival(t, rival);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE((*made)->set_up());
    EXPECT_FALSE(fs::is_empty(dir));
    made->reset();
    EXPECT_TRUE(fs::is_empty(dir)) << rival;
  }
  fs::remove(dir);
}

struct damage {
  const char *workload, *statement, *finding;
};

class planted_damage : public testing::TestWithParam<damage> {};

TEST_P(planted_damage, is_found) {
  const workloads::parameters p{.value_size = 64, .keys = 500};
  const auto w = sql::make_sql_workload(GetParam().workload, p);
  const auto draws = workloads::make_workload(GetParam().workload, p);
  const auto db = sql::connection::open(":memory:");
  ASSERT_TRUE(w && draws && db);
  ASSERT_TRUE((*w)->fill(**db));
  base::rng random(1);
  const auto session = (*w)->make_session(*db);
  for (int i = 0; i < 300; ++i) {
    const auto op = (*draws)->draw(random);
    const auto done = session->apply({&op, 1});
    ASSERT_TRUE(done) << done.error().message;
  }
  const auto sound = (*w)->check(**db);
  ASSERT_TRUE(sound) << sound.error().message;
  ASSERT_TRUE((*db)->run(GetParam().statement));
  ASSERT_GT((*db)->changes(), 0);
  const auto found = (*w)->check(**db);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::corrupt);
  EXPECT_THAT(found.error().message, HasSubstr(GetParam().finding));
}

INSTANTIATE_TEST_SUITE_P(
    all, planted_damage,
    testing::Values(
        damage{"ycsb-a", "DELETE FROM record WHERE key = 7", "the keys are not those"},
        damage{"ycsb-d", "UPDATE record SET key = -1 WHERE key = 7", "the keys are not those"},
        damage{"ycsb-f", "UPDATE record SET value = x'00' WHERE key = 7", "not as long"},
        damage{"store", "DELETE FROM blob WHERE key = (SELECT max(key) FROM blob)", "fewer blobs"},
        damage{"linkbench", "DELETE FROM link WHERE rowid = (SELECT max(rowid) FROM link)",
               "a count differs"},
        damage{"linkbench", "DELETE FROM link_count WHERE count = 1", "not counted"},
        damage{"linkbench", "DELETE FROM node WHERE id = 3", "fewer nodes"},
        damage{"tpcc", "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 0", "condition 1"},
        damage{"tpcc", "DELETE FROM orders WHERE o_id = 3", "condition"},
        damage{"tpcc", "DELETE FROM new_order WHERE no_o_id = 8", "condition"},
        damage{"tpcc", "DELETE FROM order_line WHERE ol_number = 0", "condition 4"},
        damage{"tpcc", "DELETE FROM history WHERE rowid = 1", "condition 8"},
        damage{"tpcc", "DELETE FROM stock WHERE s_i_id = 0", "at the start"}),
    [](const auto& which) {
      return std::string(which.param.workload).substr(0, 4) + std::to_string(which.index);
    });

TEST(sql_connection, runs_a_transaction_again_when_another_one_had_the_lock) {
  const std::string path =
      (fs::path(testing::TempDir()) / ("stele-locked-" + std::to_string(::getpid()))).string();
  const auto one = sql::connection::open(path), two = sql::connection::open(path);
  ASSERT_TRUE(one && two);
  ASSERT_TRUE((*one)->run("CREATE TABLE t(x); BEGIN IMMEDIATE"));
  ::sqlite3_busy_handler((*two)->handle(), nullptr, nullptr);
  unsigned attempts = 0;
  sql::statement insert(**two, "INSERT INTO t VALUES(?)");
  const auto done = (*two)->transaction(sql::transaction_kind::one_statement, [&]() -> result<> {
    const auto freed = ++attempts == 3 ? (*one)->run("COMMIT") : result<>{};
    return freed ? insert.run(attempts) : freed;
  });
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(attempts, 3u);
  EXPECT_EQ((*one)->text("SELECT x FROM t"), "3");
  EXPECT_THAT((*one)->run("nonsense").error().message, HasSubstr("SQLite says near \"nonsense\""));
  fs::remove(path);
}

}  // namespace
}  // namespace stele::bench
