// Power failures of real pool files: every mechanism, every write and sync of a run and of
// recoveries from it. Over a million states in all, without a violation. Planted bugs of the
// mechanisms and of the file medium must be found.
//
// STELE_FILE_OPERATIONS makes the runs longer, STELE_FILE_BOUND explores more states for each crash
// point; `stele crash run --media file` does the same by hand.
#include <explore/explorer.h>
#include <explore/mutant_table.h>
#include <explore/replay.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>
#include <tests/crash/mechanisms.h>

#include <cstdio>

namespace stele::explore {
namespace {

using budget::count_from;

plan file_plan(const std::string& mechanism, const char* workload, unsigned threads) {
  plan p;
  p.mechanism = mechanism;
  p.workload = workload;
  p.threads = threads;
  p.seed = threads;  // log_structured has other options by turns
  p.operations = count_from("STELE_FILE_OPERATIONS", 200);
  p.media = "file";
  return p;
}

settings file_budget() {
  settings s;
  s.bound = count_from("STELE_FILE_BOUND", 256 / budget::slowness);
  return s;
}

findings explored(const plan& p, const settings& s) {
  const auto found = explore_isolated(p, s);
  EXPECT_TRUE(found) << found.error().message;
  if (!found) return {};
  fmt::print("  {}/{}, {} threads: {}\n", p.mechanism, p.workload, p.threads, summary_of(*found));
  std::fflush(stdout);
  return *found;
}

findings expect_no_violation(const plan& p, const settings& s) {
  findings found = explored(p, s);
  for (const violation& v : found.violations)
    ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
  return found;
}

class FileCrashes : public ::testing::TestWithParam<std::string> {};

TEST_P(FileCrashes, every_power_failure_recovers) {
  std::uint64_t states = 0;
  for (const char* workload : {"sps", "rbtree", "churn"})
    for (const unsigned threads : {1u, 2u}) {
      const findings found =
          expect_no_violation(file_plan(GetParam(), workload, threads), file_budget());
      EXPECT_GT(found.recoveries, 0u);
      states += found.states;
    }
  fmt::print("  {}: {} states\n", GetParam(), states);
  EXPECT_GT(states, 80'000 / budget::slowness) << "twelve mechanisms, a million in all";
}

// A commit that was not yet durable may be lost, but none before the last sync.
TEST_P(FileCrashes, ordered_commits_are_a_prefix_from_the_last_sync_on) {
  // For others an ordered commit is a durable one.
  const bool defers = GetParam() == "default" || GetParam().starts_with("archapt");
  for (const std::uint64_t sync_every : {1, 8, 1000})
    for (const char* workload : {"sps", "churn"}) {
      if (!defers && sync_every != 8) continue;
      plan p = file_plan(GetParam(), workload, workload == std::string_view("churn") ? 2 : 1);
      p.operations /= 2;
      p.sync_every = sync_every;
      settings s = file_budget();
      s.bound /= 2;
      expect_no_violation(p, s);
    }
}

// A run with a fault may end early, so its budget is smaller.
void expect_sound_after_fault(const plan& p) {
  settings s = file_budget();
  s.bound = 32;
  s.recovery_depth = 1;
  const auto found = explore_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  for (const violation& v : found->violations)
    ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
}

// The run ends with the failed call: whether its data is durable is unknown, and nothing is
// acknowledged after it.
TEST_P(FileCrashes, nothing_is_acknowledged_after_a_call_that_failed) {
  for (std::uint64_t call = 1; call <= 120; call += call < 24 ? 1 : 12) {
    plan p = file_plan(GetParam(), "sps", 1);
    p.operations = 60;
    p.fail_call = call;
    expect_sound_after_fault(p);
  }
}

// A failed write-back is reported once and its pages are lost; a write is short; a call is
// interrupted. Either the run ends there, or what follows is durable as usual.
TEST_P(FileCrashes, nothing_is_lost_to_a_fault_that_is_told_of_once) {
  for (const file_fault fault :
       {file_fault::write_back, file_fault::short_write, file_fault::interrupted})
    for (std::uint64_t call = 1; call <= 90; call += call < 16 ? 1 : 15) {
      plan p = file_plan(GetParam(), "sps", 1);
      p.operations = 60;
      p.fail_call = call;
      p.fault = fault;
      expect_sound_after_fault(p);
    }
}

INSTANTIATE_TEST_SUITE_P(All, FileCrashes, ::testing::ValuesIn(durable_mechanisms()),
                         [](const auto& one) { return test_name(one.param); });

// The file's length is durable with the next sync, not earlier.
TEST(FileCrashes, pools_with_sums_that_grow) {
  for (const char* mechanism : {"default", "redo-async", "undo"}) {
    plan p = file_plan(mechanism, "churn", 2);
    p.block_checksums = std::string_view(mechanism) != "undo";
    p.grow_every = 40;
    expect_no_violation(p, file_budget());
  }
}

// A close promises as much as a sync, and the next session goes on from what it left.
void expect_sound_sessions(plan p, std::uint64_t operations_of_each) {
  p.reopen_after = operations_of_each;
  settings s = file_budget();
  s.bound /= 8;
  expect_no_violation(p, s);
}

TEST_P(FileCrashes, sessions_that_follow_each_other) {
  for (const char* workload : {"sps", "churn"})
    for (const std::uint64_t sync_every : {0, 7}) {
      plan p = file_plan(GetParam(), workload, 2);
      p.operations = 90;
      p.sync_every = sync_every;
      expect_sound_sessions(p, 25);
    }
}

TEST(FileCrashes, sessions_of_a_pool_that_grows) {
  plan p = file_plan("default", "churn", 2);
  p.operations = 120;
  p.grow_every = 30;
  p.block_checksums = true;
  expect_sound_sessions(p, 40);
}

TEST(FileCrashes, values_of_many_sectors) {
  for (const char* mechanism : {"default", "undo", "archapt-redo", "log_structured"}) {
    plan p = file_plan(mechanism, "sps", 2);
    p.operations = 40;
    p.value_size = 1024;
    p.pool_size *= 4;
    settings s = file_budget();
    s.bound /= 4;
    expect_no_violation(p, s);
  }
}

TEST(FileCrashes, see_that_nothing_persists) {
  for (const char* workload : {"sps", "rbtree", "churn"})
    EXPECT_FALSE(explored(file_plan("none", workload, 1), file_budget()).violations.empty())
        << workload;
}

struct planted {
  std::string_view what;
  const char* mechanism;
  const char* workload = "sps";
  std::uint64_t sync_every = 0, grow_every = 0, fail_call = 0;
  std::size_t log_size = 4096;  // larger: a log of several blocks
  file_fault fault = file_fault::refused;
};

// A missing fence, a log truncated too early, an early acknowledgement; and for files a missing
// sync, run of blocks or wait.
TEST(FileCrashes, see_planted_bugs) {
  // Not here, because no crash of a file shows them: bulk_no_mark_fence and recover_no_mark_fence
  // (the explorer of memory kills them). This medium writes runs of neighbouring blocks in the
  // order in which they were flushed, each synchronously. The watermark is flushed before the
  // heads. The page between them is that of the header's copy, so they are never in one run, and
  // the watermark is durable first.
  for (const planted& b : std::initializer_list<planted>{
           {"file_home_unsynced", "default", "churn"},
           {"file_home_unsynced", "undo"},
           {"file_last_run", "default"},
           {"file_not_synchronous", "default"},
           {"file_failure_ignored", "default", "sps", 0, 0, 20},
           {"file_sync_retried", "undo", "sps", 0, 0, 10},
           {"file_write_back_ignored", "undo", "sps", 0, 0, 4, 4096, file_fault::write_back},
           {"bulk_no_log_fence", "redo-async"},
           {"bulk_home_first", "redo-async"},
           {"bulk_mark_ahead", "default"},
           {"default_shared_alone", "default", "churn", 8, 0, 0, 16384},
           {"default_shared_unflushed", "default"},
           {"default_no_batch_fence", "default", "churn", 8},
           {"default_no_wait", "default", "churn", 8},
           {"default_no_chain", "default", "sps", 1000},
           {"default_chain_ignored", "default", "sps", 1000},
           {"default_last_record", "default", "churn", 8},
           {"redo_no_log_fence", "redo"},
           {"redo_no_data_fence", "redo"},
           {"undo_no_log_fence", "undo"},
           {"undo_truncate_first", "undo"},
           {"base_no_log_fence", "base"},
           {"base_no_truncate_fence", "base"},
           {"ls_no_fence", "log_structured"},
           {"archapt_no_log_fence", "archapt-redo"},
           {"archapt_undo_acknowledged", "archapt-undo"},
           {"recover_truncate_first", "redo"},
           {"recover_no_home_fence", "default"},
           {"grow_no_slot_fence", "default", "churn", 0, 40},
       }) {
    plan p = file_plan(b.mechanism, b.workload, b.workload == std::string_view("churn") ? 2 : 1);
    p.sync_every = b.sync_every;
    p.grow_every = b.grow_every;
    p.fail_call = b.fail_call;
    p.fault = b.fault;
    p.mutant = *mutant_named(b.what);
    if (b.log_size != p.log_size) p.log_size = b.log_size, p.pool_size *= 4;
    settings s = file_budget();
    s.max_violations = 1;
    s.recovery_operations = 6;
    const auto found = explore_isolated(p, s);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(found->violations.empty())
        << b.what << " in " << b.mechanism << " survived " << found->states << " states";
  }
}

TEST(FileCrashes, a_violation_replays_from_its_line) {
  plan p = file_plan("undo", "churn", 2);
  p.mutant = base::mutant::file_home_unsynced;
  settings how = file_budget();
  // A later violation may be a signal, after which this process cannot explore.
  how.max_violations = 1;
  const auto found = explore(p, how);
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->violations.empty());
  for (const violation& v : found->violations) {
    const auto line = parse_line<run_crash>(v.line);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(format_line(*line), v.line);
    const auto seen = replay(*line);
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->problem, v.what);
    EXPECT_NE(seen->explanation.find("sector"), std::string::npos);
  }
}

TEST(FileCrashes, are_the_same_every_time_and_on_every_file_system) {
  plan p = file_plan("default", "churn", 2);
  p.operations = 20;
  settings s = file_budget();
  s.recovery_samples = 0;
  const auto once = explore(p, s);
  p.directory = ::testing::TempDir();
  const auto again = explore(p, s);
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->states, again->states);
  EXPECT_EQ(once->distinct, again->distinct);
  EXPECT_EQ(once->epochs, again->epochs);
}

TEST(FileCrashes, say_what_cannot_be) {
  plan p = file_plan("default", "sps", 1);
  p.media = "tape";
  EXPECT_EQ(explore(p, {}).error().code, errc::invalid_argument);
  p.media = "file";
  p.directory = "/nonesuch";
  const auto found = explore(p, {});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->violations.size(), 1u);
  EXPECT_NE(found->violations.front().what.find("/nonesuch"), std::string::npos);
}

}  // namespace
}  // namespace stele::explore
