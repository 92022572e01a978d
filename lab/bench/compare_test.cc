// The comparison: its sums, its output, and that every contender runs and leaves a sound structure.
#include <bench/compare.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace stele::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

comparison small(const std::string& workload) {
  comparison c;
  c.what.workload = workload;
  c.what.parameters.keys = 1000;
  c.what.ops_per_tx = 3;
  c.what.dir = testing::TempDir();
  c.runs = 2;
  c.seconds = 0.02;
  return c;
}

std::vector<std::string> systems_of(const report& r) {
  std::vector<std::string> names;
  for (const row& x : r.rows) names.push_back(x.system);
  return names;
}

TEST(spread, median_of_odd_and_even_counts) {
  const spread odd = spread_of({3, 1, 2});
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(spread_of({4, 1, 2, 3}).median, 2.5);
}

class every_workload : public testing::TestWithParam<std::string> {};

TEST_P(every_workload, runs_and_counts_on_mechanism_and_limits) {
  comparison c = small(GetParam());
  c.mechanisms = {"redo"};
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_THAT(systems_of(*r), testing::ElementsAre("volatile", "one-fence log by hand", "redo"));
  for (const row& x : r->rows) {
    EXPECT_GT(x.tx_per_s.min, 0) << x.system;
    EXPECT_GT(x.p999_ns, 0) << x.system;
    EXPECT_LE(x.p50_ns, x.p999_ns) << x.system;
  }
  EXPECT_GE(r->rows[2].fences_per_tx.value(), 1);
  EXPECT_GE(r->rows[2].space_bytes.value(), r->rows[2].live_bytes);
  EXPECT_LE(r->rows[1].fences_per_tx.value(), 1.001);  // and two for each lap of its ring
}

TEST_P(every_workload, leaves_sound_structures_with_two_threads) {
  comparison c = small(GetParam());
  c.mechanisms = {"redo-async"};
  c.what.threads = 2;
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rows.back().threads, 2u);
  EXPECT_FALSE(r->notes.empty());  // the volatile structures support one thread only
}

std::string test_name(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

// The mixes of ycsb differ only in their shares of reads, which write nothing: the first represents
// all.
std::vector<std::string> workloads_by_structure() {
  std::vector<std::string> names = workloads::workload_names();
  std::erase_if(
      names, [](const std::string& name) { return name.starts_with("ycsb-") && name != "ycsb-a"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, every_workload, testing::ValuesIn(workloads_by_structure()),
                         [](const auto& which) { return test_name(which.param); });

TEST(compare, rows_of_many_items_a_call_count_items) {
  for (const double read_share : {0.0, 0.5, 1.0}) {
    comparison c = small("store");
    c.mechanisms = {"redo"};
    c.limits = false;
    c.what.ops_per_tx = 1;
    c.what.parameters.read_share = read_share;
    c.batch = 8;
    const auto r = compare(c);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_THAT(systems_of(*r), testing::ElementsAre("redo", "redo, 8 a call"));
    EXPECT_THAT(r->notes, testing::ElementsAre(HasSubstr("rows named 8 a call")));
    EXPECT_EQ(r->rows[1].transactions % 8, 0u);
    EXPECT_LE(r->rows[1].fences_per_tx.value(), (r->rows[0].fences_per_tx.value() + 0.1) / 4);
  }
  comparison c = small("rbtree");
  c.mechanisms = {"redo"};
  c.batch = 8;
  EXPECT_THAT(compare(c).error().message, HasSubstr("no calls for many items"));
}

TEST(compare, rivals_run_hash_for_word_hash) {
  const auto rivals = rivals_for("hash");
  if (rivals.empty()) GTEST_SKIP() << "no rival with a hash map";
  comparison c = small("word_hash");
  c.mechanisms = {"redo"};
  c.rivals = {rivals.front()};
  c.limits = false;
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rows.size(), 2u);
  EXPECT_THAT(r->notes, testing::ElementsAre(HasSubstr("and run hash")));
}

class every_rival : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(every_rival);

TEST_P(every_rival, leaves_sound_structures) {
  unsigned ran = 0;
  for (const std::string workload : {"sps", "hash", "rbtree", "store"}) {
    for (const unsigned threads : {1u, 2u}) {
      if (workload == "sps" && threads != 1) continue;  // without isolation, swaps may interleave
      if (GetParam().ends_with("-seq") && threads != 1) continue;  // for one thread
      comparison c = small(workload);
      c.rivals = {GetParam()};
      c.limits = false;
      c.what.threads = threads;
      c.what.parameters.read_share = 0.2;
      const auto r = compare(c);
      const bool runs = std::ranges::count(rivals_for(workload), GetParam()) != 0;
      ASSERT_EQ(!runs, !r && r.error().code == errc::unsupported) << workload;
      if (!runs) continue;  // rivals that are key-value stores have no arrays
      ASSERT_TRUE(r) << workload << ": " << r.error().message;
      EXPECT_GT(r->rows.front().tx_per_s.min, 0);
      ++ran;
    }
  }
  EXPECT_GE(ran, 2u);
}

INSTANTIATE_TEST_SUITE_P(all, every_rival, testing::ValuesIn(rival_names()),
                         [](const auto& which) { return test_name(which.param); });

TEST(compare, rivals_from_checkouts_say_what_does_not_fit) {
  const auto names = rival_names();
  const auto message_of = [](const task& t, const std::string& rival) {
    const auto made = make_rival(t, rival);
    return made ? std::string() : made.error().message;
  };
  task t = small("sps").what;
  t.media = "eadr";
  for (const std::string rival : {"quadra-seq", "trinity-tl2", "viper"}) {
    if (std::ranges::count(names, rival) == 0) continue;
    t.workload = rival == "viper" ? "store" : "sps";
    EXPECT_THAT(message_of(t, rival), HasSubstr("runs on media 'adr', not 'eadr'"));
  }
  if (std::ranges::count(names, "quadra-seq") == 0) GTEST_SKIP() << "no checkout of durabletx";
  t = small("hash").what;
  t.parameters.value_size = 64;
  EXPECT_THAT(message_of(t, "quadra"), HasSubstr("values have 8 bytes, not 64"));
  EXPECT_EQ(message_of(t, "quadra-vr"), "");
  t.threads = 2;
  EXPECT_THAT(message_of(t, "quadra-vr-seq"), HasSubstr("one thread only"));
  t.workload = "sps";
  t.parameters = {.value_size = 4096, .keys = std::size_t{1} << 20};
  EXPECT_THAT(message_of(t, "quadra-vr"), HasSubstr("1 GiB in one block"));
}

TEST(compare, rivals_with_a_replica_take_values_of_any_size) {
  comparison c = small("hash");
  if (std::ranges::count(rival_names(), "quadra-vr") == 0) GTEST_SKIP() << "no such checkout";
  c.rivals = {"quadra-vr-seq", "trinity-vr-seq", "trinity-vr-tl2"};
  c.limits = false;
  c.what.parameters.read_share = 0.2;
  for (const std::size_t size : {64u, 4096u}) {
    c.what.parameters.value_size = size;
    for (const std::string workload : {"sps", "hash", "rbtree"}) {
      c.what.workload = workload;
      const auto r = compare(c);
      ASSERT_TRUE(r) << workload << ": " << r.error().message;
      EXPECT_GT(r->rows.back().space_bytes.value(), r->rows.back().live_bytes);
    }
  }
}

TEST(compare, names_what_does_not_exist_before_running_anything) {
  comparison c = small("sps");
  c.progress = [](const std::string& what) { ADD_FAILURE() << what; };
  c.mechanisms = {"nonesuch"};
  EXPECT_THAT(compare(c).error().message, HasSubstr("nonesuch"));
  c.mechanisms = {};
  c.rivals = {"nonesuch"};
  EXPECT_EQ(compare(c).error().code, errc::not_found);
  c.rivals = {};
  c.limits = false;
  EXPECT_EQ(compare(c).error().code, errc::invalid_argument);
}

TEST(compare, keeps_completed_runs_when_cancelled) {
  comparison c = small("sps");
  c.runs = 100;
  c.cancelled = [asked = 0]() mutable { return ++asked > 2; };
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_THAT(r->notes.back(), HasSubstr("interrupted after 2 of 100"));
  c.cancelled = [] { return true; };
  EXPECT_EQ(compare(c).error().code, errc::cancelled);
}

// B11
TEST(compare, runs_contenders_that_are_made_already_and_idle_ones_slower) {
  comparison c = small("sps");
  c.limits = false;
  std::vector<std::unique_ptr<contender>> both;
  for (const double idle_share : {0.0, 0.9}) {
    task t = c.what;
    t.idle_share = idle_share;
    t.log_size_bytes = idle_share == 0 ? 65536 : 131072;  // gives their pool files different names
    both.push_back(std::move(*make_stele(t, "redo")));
  }
  const auto r = compare(std::move(both), c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_THAT(systems_of(*r), testing::ElementsAre("redo", "redo"));
  EXPECT_LT(r->rows[1].tx_per_s.median, 0.5 * r->rows[0].tx_per_s.median);
}

TEST(compare, each_policy_of_stele_has_a_row) {
  comparison c = small("sps");
  c.limits = false;
  c.mechanisms = {"redo"};
  c.policies = {concurrency::single_writer, concurrency::stm};
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_THAT(systems_of(*r), testing::ElementsAre("redo, single_writer", "redo, stm"));
}

TEST(compare, ordered_commits_are_named_and_explained) {
  comparison c = small("sps");
  c.mechanisms = {"default"};
  c.limits = false;
  c.what.commits = durability::ordered;
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_THAT(systems_of(*r), testing::ElementsAre("default, ordered"));
  EXPECT_GE(r->rows.front().fences_per_tx.value(), 1) << "on memory they are durable ones";
  EXPECT_THAT(r->notes, testing::Contains(HasSubstr("sync at the end of each run")));
  c.what.defer_ordered = deferral::always;
  const auto deferred = compare(c);
  ASSERT_TRUE(deferred) << deferred.error().message;
  EXPECT_THAT(systems_of(*deferred), testing::ElementsAre("default, deferred"));
  EXPECT_LT(deferred->rows.front().fences_per_tx.value(), 0.1);
}

TEST(compare, tells_what_the_driver_itself_takes) {
  comparison c = small("hash");
  const auto r = compare(c);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_GT(r->hardware.driver_ns.value().min, 0);
  EXPECT_THAT(table_of(*r, "", table_width::wide), HasSubstr("\ndriver: "));
  EXPECT_TRUE(json_of(*r)["limits"].contains("driver_ns"));
}

report of_two_rows() {
  report r;
  row a;
  a.system = "volatile";
  a.tx_per_s = {1, 4e6, 5e6};
  row b;
  b.system = "redo";
  b.tx_per_s = {1, 2e6, 3e6};
  b.fences_per_tx = 1;
  b.space_bytes = 30;
  b.live_bytes = 10;
  r.rows = {a, b};
  return r;
}

TEST(report, ratios_are_to_the_baseline_or_the_first_system) {
  EXPECT_THAT(table_of(of_two_rows(), "", table_width::wide), HasSubstr(" 2.00 "));
  EXPECT_THAT(table_of(of_two_rows(), "volatile", table_width::wide), HasSubstr(" 0.50 "));
}

TEST(report, a_narrow_table_fits_80_columns_and_says_us_and_ms) {
  report r = of_two_rows();
  row& longest = r.rows.front();
  longest.system = "one-fence log by hand", longest.media = "delayed:1000:2";
  longest.survives = durability_level::process, longest.tx_per_s = {1, 999.994e3, 5e6};
  longest.p50_ns = 999.4, longest.p99_ns = 30'719, longest.p999_ns = 2.25e6;
  r.hardware.streamed_line_fence_ns = {1, 157, 2000}, r.hardware.empty_fence_ns = {1, 1, 1};
  r.hardware.flushed_line_fence_ns = {1, 1763, 2000};
  const std::string narrow = table_of(r, "", table_width::narrow);
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(narrow, HasSubstr(" 999 ns  30.7 us\n"));
  EXPECT_THAT(narrow, HasSubstr("flushed random line + fence 1.8 us,\n"));
  EXPECT_THAT(narrow, Not(HasSubstr("fences/tx")));
  const std::string wide = table_of(r, "", table_width::wide);
  EXPECT_THAT(wide, HasSubstr("fences/tx"));
  EXPECT_THAT(wide, HasSubstr(" 2.2 ms "));
}

TEST(report, json_has_the_documented_keys) {
  const nlohmann::json j = json_of(of_two_rows());
  EXPECT_EQ(j["limits"]["volatile_tx_per_s"], 4e6);
  std::set<std::string> keys;
  for (const auto& [key, value] : j["rows"][1].items()) keys.insert(key);
  EXPECT_THAT(keys, testing::ElementsAre("aborts_per_tx", "durability", "fences_per_tx",
                                         "latency_ns", "lines_per_tx", "live_bytes", "media",
                                         "space_bytes", "streamed_bytes_per_tx", "system",
                                         "threads", "tx_per_s", "workload"));
  EXPECT_EQ(j["rows"][1]["tx_per_s"]["median"], 2e6);
  EXPECT_TRUE(j["rows"][0]["fences_per_tx"].is_null());
}

}  // namespace
}  // namespace stele::bench
