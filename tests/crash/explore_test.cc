// Short runs of every mechanism, under every crash that the model allows, with the real recovery:
// no violation.
//
// The budget fits continuous integration, about forty million states in all; `stele crash run` and
// STELE_EXPLORE_BOUND (choices at a crash point) can spend more. The tests also check the explorer:
// without persistence it finds violations, and their lines replay them.
#include <explore/explorer.h>
#include <explore/replay.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>
#include <tests/crash/mechanisms.h>

#include <cstdio>

namespace stele::explore {
namespace {

settings ci_budget() {
  settings s;
  s.bound = budget::count_from("STELE_EXPLORE_BOUND", 128);
  s.recovery_depth = 2;
  return s;
}

void expect_no_violation(const plan& p, settings s) {
  s.bound = std::max<std::uint64_t>(s.bound / budget::slowness, 1);
  const auto found = explore_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  fmt::print("  {}/{}, {} threads: {}\n", p.mechanism, p.workload, p.threads, summary_of(*found));
  std::fflush(stdout);
  EXPECT_GT(found->states, 1000 / budget::slowness);
  EXPECT_GT(found->recoveries, 0u);
  for (const violation& v : found->violations)
    ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
}

class Explore : public ::testing::TestWithParam<std::tuple<std::string, const char*, unsigned>> {};

// B7, B9, L2
TEST_P(Explore, every_crash_state_recovers) {
  plan p;
  p.mechanism = std::get<0>(GetParam());
  p.workload = std::get<1>(GetParam());
  p.threads = std::get<2>(GetParam());
  p.operations = (*detail::find_mechanism(p.mechanism))->has_parity
                     ? 60
                     : 300;  // a parity commit has many crash points, and half of home is checksums
  expect_no_violation(p, ci_budget());
}

INSTANTIATE_TEST_SUITE_P(All, Explore,
                         ::testing::Combine(::testing::ValuesIn(durable_mechanisms()),
                                            ::testing::Values("sps", "hash", "word_hash", "rbtree",
                                                              "bptree", "kv", "churn"),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& one) {
                           return fmt::format("{}_{}_{}", test_name(std::get<0>(one.param)),
                                              std::get<1>(one.param), std::get<2>(one.param));
                         });

// Transactions over many structures and lines. One mechanism of each kind is enough, because the
// tests above run the same structures.
TEST(Explore, loads_of_published_benchmarks) {
  for (const char* workload : {"ycsb-a", "ycsb-d", "tpcc", "linkbench"})
    for (const char* mechanism : {"redo-async", "undo", "log_structured"}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = workload;
      p.threads = 2;
      p.operations = 60;
      if (p.mechanism == "log_structured") p.seed = 2;  // three logs a thread
      settings s = ci_budget();
      s.bound = 128;
      expect_no_violation(p, s);
    }
}

// Long runs of words, zero halves, blocks made and freed in one commit, long aborts, extents of
// many chunks; logs of one and of several blocks of a file.
TEST(Explore, what_bugs_hid_behind) {
  for (const std::string& mechanism : durable_mechanisms())
    for (const std::size_t log_size : {4096, 16384}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = "edges";
      p.pool_size = 262144;
      p.log_size = log_size;
      p.threads = 2;
      p.operations = 60;
      p.media = log_size > 4096 && (mechanism == "default" || mechanism == "redo" ||
                                    mechanism == "undo" || mechanism == "base")
                    ? "file"
                    : "memory";
      if (mechanism == "default" && log_size == 4096) p.sync_every = 5;
      settings s = ci_budget();
      s.bound = 24;
      s.recovery_bound = 6;
      expect_no_violation(p, s);
    }
}

// Records of a log, of half a log, and up to two lines less or more.
TEST(Explore, records_as_long_as_a_log) {
  for (const std::string& mechanism : durable_mechanisms()) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "rings";
    p.pool_size = (*detail::find_mechanism(mechanism))->has_parity ? 262144 : 131072;
    p.threads = 2;
    p.operations = 40;
    settings s = ci_budget();
    s.bound = 16;
    s.recovery_bound = 6;
    expect_no_violation(p, s);
  }
}

// Runs of several chunks are made, shared, emptied and gathered.
TEST(Explore, large_slabs) {
  for (const std::string& mechanism : durable_mechanisms()) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "large";
    p.threads = 2;
    p.operations = 60;
    p.pool_size = (*detail::find_mechanism(mechanism))->has_parity ? 524288 : 262144;
    settings s = ci_budget();
    s.bound = 24;
    s.recovery_bound = 6;
    expect_no_violation(p, s);
  }
}

// The version of the pool is raised when it is opened; then it gets what version 1 lacks.
TEST(Explore, pools_of_an_earlier_version) {
  for (const std::string& mechanism : durable_mechanisms()) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "large";
    p.operations = 20;
    p.pool_size = (*detail::find_mechanism(mechanism))->has_parity ? 524288 : 262144;
    p.earlier_version = true;
    settings s = ci_budget();
    s.bound = 64;
    s.recovery_bound = 6;
    expect_no_violation(p, s);
  }
}

// Runs of a workload on key-value stores.
void expect_sound_stores(plan p, std::uint64_t bound) {
  for (const char* mechanism : {"default", "undo", "log_structured"}) {
    p.mechanism = mechanism;
    p.threads = 2;
    p.operations = 80;
    p.value_size = 20;
    settings s = ci_budget();
    s.bound = bound;
    expect_no_violation(p, s);
  }
}

// Two indexes that must agree; values whose size is no power of two; more keys than a node of the
// ordered index has children.
TEST(Explore, the_key_value_store) {
  plan p;
  p.workload = "store";
  p.keys = 64;
  expect_sound_stores(p, 128);
}

// Named stores, items that expire and are removed, moves between stores, and drops, which end only
// after several transactions.
TEST(Explore, named_stores) {
  plan p;
  p.workload = "stores";
  p.keys = 24;
  p.pool_size = 262144;
  expect_sound_stores(p, 64);
}

// Keys and values beside their nodes, values that outgrow their place, objects that do not begin
// where their blocks begin.
TEST(Explore, structures_in_coalescing_memory) {
  for (const char* workload : {"kv", "rbtree", "linkbench"})
    for (const char* mechanism : {"redo-async", "undo", "log_structured"}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = workload;
      p.coalesce = true;
      p.value_size = 64;
      p.threads = 2;
      p.operations = 40;
      settings s = ci_budget();
      s.bound = 128;
      expect_no_violation(p, s);
    }
}

TEST(Explore, values_of_many_lines) {
  for (const std::string& mechanism : durable_mechanisms()) {
    plan p;
    p.mechanism = mechanism;
    p.value_size = 256;
    p.threads = 2;
    settings s = ci_budget();
    if ((*detail::find_mechanism(mechanism))->has_parity)
      p.pool_size *= 2, p.operations = 30, s.bound = 64;
    expect_no_violation(p, s);
  }
}

// The default, in which nothing is skipped: durable commits, which stand alone, and ordered ones,
// on logs that are filled several times.
// A7
TEST(Explore, archapt_that_skips_nothing) {
  for (const char* mechanism : {"archapt-redo", "archapt-undo"})
    for (const char* workload : {"sps", "hash", "rbtree", "bptree", "kv", "churn"})
      for (const std::uint64_t sync_every : {0, 5}) {
        plan p;
        p.mechanism = mechanism;
        p.workload = workload;
        p.pool_size *= 2;  // half of home is checksums
        p.threads = 2;
        p.operations = 200;
        p.sync_every = sync_every;
        p.cache_bytes = skips_nothing;
        settings s = ci_budget();
        s.bound = 16;
        s.recovery_bound = 8;
        expect_no_violation(p, s);
      }
}

// Whole values are skipped, side by side. Recovery must detect, every time, what the checksums
// cannot restore, and must refuse nothing else.
// A7
TEST(Explore, lines_that_cannot_be_restored) {
  for (const char* mechanism : {"archapt-redo", "archapt-undo"})
    for (const bool halves : {false, true}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = "sps";
      p.value_size = 256;
      p.pool_size *= halves ? 4 : 2;
      p.operations = 40;
      p.sync_every = 8;
      p.halves = halves;
      settings s = ci_budget();
      s.bound = 256;
      const auto found = explore_isolated(p, s);
      ASSERT_TRUE(found) << found.error().message;
      fmt::print("  {}, halves {}: {}\n", mechanism, halves, summary_of(*found));
      EXPECT_GT(found->refused, 0u);
      EXPECT_GT(found->states, found->refused) << "others leave what can be restored";
      for (const violation& v : found->violations)
        ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
    }
}

// A7
TEST(Explore, losses_go_back_to_a_checkpoint) {
  for (const char* mechanism : {"archapt-redo", "archapt-undo"}) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "sps";
    p.value_size = 256;
    p.pool_size *= 4;
    p.operations = 40;
    p.checkpoint_commits = 6;
    settings s = ci_budget();
    s.bound = 128;
    const auto found = explore_isolated(p, s);
    ASSERT_TRUE(found) << found.error().message;
    fmt::print("  {}: {}\n", mechanism, summary_of(*found));
    EXPECT_GT(found->fell_back, 0u);
    EXPECT_EQ(found->refused, 0u);
    for (const violation& v : found->violations)
      ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
  }
}

// B6
TEST(Explore, crashes_in_recoveries_of_crashes_in_recoveries) {
  for (const std::string& mechanism : durable_mechanisms()) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "rbtree";
    p.threads = 2;
    settings s = ci_budget();
    s.bound = 64;
    s.recovery_depth = 5;
    expect_no_violation(p, s);
  }
}

TEST(Explore, another_mechanism_opens_what_a_crash_left) {
  for (const std::string& before : durable_mechanisms())
    for (const char* after : {"base", "redo-async", "undo"}) {
      if ((*detail::find_mechanism(before))->home != (*detail::find_mechanism(after))->home)
        continue;  // cannot open a pool of this kind
      plan p;
      p.mechanism = before;
      p.reopen = after;
      p.workload = "churn";
      p.threads = 2;
      settings s = ci_budget();
      s.bound = 128;
      expect_no_violation(p, s);
    }
}

// Without checksums over home archapt skips nothing; with block checksums it makes them at close.
TEST(Explore, pools_that_were_made_for_another_mechanism) {
  for (const char* mechanism : {"archapt-undo", "archapt-redo", "redo", "xil"})
    for (const char* reopen : {"", "default"})
      for (const bool sums : {false, true}) {
        plan p;
        p.mechanism = mechanism;
        p.reopen = reopen;
        p.created_for = *mechanism == 'a' ? "default" : "archapt-undo";
        p.workload = "churn";
        p.threads = 2;
        p.operations = 60;
        p.block_checksums = sums;
        if (p.created_for != "default") p.pool_size *= 2;
        settings s = ci_budget();
        s.bound = 32;
        expect_no_violation(p, s);
      }
}

// B5
TEST(Explore, bulk_persistence_of_the_whole_cache) {
  for (const char* mechanism : {"vcbp", "blurred", "adaptive", "default"}) {
    plan p;
    p.mechanism = mechanism;
    p.workload = "rbtree";
    p.threads = 2;
    p.operations = 120;
    p.whole_cache = true;
    settings s = ci_budget();
    s.bound = 512;
    expect_no_violation(p, s);
  }
}

// Execution in log where adjacent words share a record; abort records far apart and in every line.
TEST(Explore, block_logs_with_runs) {
  for (const char* mechanism : {"xil", "blurred", "adaptive"})
    for (const char* workload : {"sps", "rbtree", "edges"}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = workload;
      p.threads = 2;
      p.operations = 60;
      p.value_size = 64;
      p.runs = true;
      p.abort_interval = workload == std::string_view("sps") ? 64 : p.mechanism == "xil" ? 4 : 1024;
      if (p.workload == "edges") p.pool_size = 262144;
      settings s = ci_budget();
      s.bound = 64;
      s.recovery_bound = 6;
      expect_no_violation(p, s);
    }
}

// Block checksums are checked at every opening, so a block that does not match is a violation.
TEST(Explore, pools_with_sums_that_grow) {
  for (const char* mechanism : {"default", "vcbp", "blurred", "redo-async"})
    for (const std::uint64_t grow_every : {0, 25}) {
      if (grow_every != 0 && std::string_view(mechanism) == "blurred")
        continue;  // growth is the same step for all
      plan p;
      p.mechanism = mechanism;
      p.workload = "churn";
      p.threads = 2;
      p.operations = 120;
      p.block_checksums = true;
      p.grow_every = grow_every;
      settings s = ci_budget();
      s.bound = 256;
      expect_no_violation(p, s);
    }
}

// What a session leaves, the next one goes on from: places of logs, sums, free lists, numbers of
// transactions, and the table that a growth has moved.
TEST(Explore, sessions_that_follow_each_other) {
  for (const std::string& mechanism : durable_mechanisms())
    for (const char* workload : {"churn", "store"}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = workload;
      p.threads = workload == std::string_view("churn") ? 2 : 1;
      p.operations = 90;
      p.reopen_after = 25;
      settings s = ci_budget();
      s.bound = 32;
      expect_no_violation(p, s);
    }
  for (const char* mechanism : {"default", "redo-async"})
    for (const std::uint64_t sync_every : {0, 5}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = "churn";
      p.threads = 2;
      p.operations = 160;
      p.sync_every = sync_every;
      p.block_checksums = true;
      p.grow_every = 30;
      p.reopen_after = 40;
      settings s = ci_budget();
      s.bound = 64;
      expect_no_violation(p, s);
    }
}

TEST(Explore, one_log_for_all_threads) {
  for (const std::uint64_t sync_every : {0, 1, 8, 1000}) {
    plan p;
    p.workload = "churn";
    p.mechanism = "default";
    p.threads = 2;
    p.operations = 200;
    p.sync_every = sync_every;
    p.shared_log = true;
    settings s = ci_budget();
    s.bound = 256;
    expect_no_violation(p, s);
  }
}

TEST(Explore, threads_that_share_logs) {
  plan p;
  p.threads = 3;
  p.workload = "churn";
  expect_no_violation(p, ci_budget());
}

TEST(Explore, sees_that_nothing_persists) {
  for (const char* workload : {"sps", "hash", "rbtree", "bptree", "kv", "churn"}) {
    plan p;
    p.mechanism = "none";
    p.workload = workload;
    const auto found = explore_isolated(p, ci_budget());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(found->violations.empty()) << workload;
  }
}

TEST(Explore, is_the_same_every_time) {
  plan p;
  p.workload = "churn";
  p.threads = 2;
  p.operations = 40;
  const auto once = explore(p, ci_budget()), again = explore(p, ci_budget());
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->states, again->states);
  EXPECT_EQ(once->distinct, again->distinct);
  EXPECT_EQ(once->epochs, again->epochs);
}

TEST(Explore, ends_when_told) {
  plan p;
  settings s = ci_budget();
  s.cancelled = [] { return true; };
  const auto found = explore(p, s);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->cancelled);
  EXPECT_LE(found->states, s.bound);
}

TEST(Explore, says_what_it_cannot_explore) {
  plan p;
  p.mechanism = "nonesuch";
  EXPECT_EQ(explore(p, {}).error().code, errc::not_found);
  p = {};
  p.workload = "nonesuch";
  EXPECT_EQ(explore(p, {}).error().code, errc::not_found);
  p = {};
  p.pool_size = 4096;
  EXPECT_EQ(explore(p, {}).error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace stele::explore
