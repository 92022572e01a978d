// Ordered durability: with ordered commits and occasional syncs, a crash leaves a prefix of the
// commits that holds everything before the last sync that returned.
//
// The tests also check that the explorer demands exactly this: acknowledgements stand at the right
// places of the tape, a sync that does nothing is found, and what no sync has covered may be lost.
#include <explore/explored_tape.h>
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

plan ordered_plan(const std::string& mechanism, const char* workload, unsigned threads,
                  std::uint64_t sync_every) {
  plan p;
  p.mechanism = mechanism;
  p.workload = workload;
  p.threads = threads;
  p.sync_every = sync_every;
  return p;
}

class Ordered : public ::testing::TestWithParam<std::tuple<std::string, const char*, unsigned>> {};

TEST_P(Ordered, every_crash_state_is_a_prefix_from_the_last_sync_on) {
  const auto [mechanism, workload, threads] = GetParam();
  // For others an ordered commit is a durable one.
  const bool defers = mechanism == "default" || mechanism.starts_with("archapt");
  for (const std::uint64_t sync_every : {1, 4, 17, 1000}) {
    if (!defers && sync_every != 17) continue;
    settings s;
    // Where every possible line is skipped, there are several times as many crash points.
    s.bound = (*detail::find_mechanism(mechanism))->has_parity ? 128 : 256;
    s.bound /= budget::slowness;
    const auto found = explore_isolated(ordered_plan(mechanism, workload, threads, sync_every), s);
    ASSERT_TRUE(found) << found.error().message;
    fmt::print("  {}/{}, {} threads, a sync every {}: {}\n", mechanism, workload, threads,
               sync_every, summary_of(*found));
    std::fflush(stdout);
    EXPECT_GT(found->recoveries, 0u);
    for (const violation& v : found->violations)
      ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ordered,
                         ::testing::Combine(::testing::ValuesIn(durable_mechanisms()),
                                            ::testing::Values("sps", "rbtree", "churn"),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& one) {
                           return fmt::format("{}_{}_{}", test_name(std::get<0>(one.param)),
                                              std::get<1>(one.param), std::get<2>(one.param));
                         });

// Pairs, one for each increase: operations acknowledged, and operations invoked by then.
using steps = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
steps acknowledgements(const plan& p, bool after_crash) {
  auto made = subject::make(p);
  EXPECT_TRUE(made);
  subject& s = **made;
  run_history t;
  auto tape = s.record(t);
  if (tape && after_crash) {
    hashed_image image = s.empty_image();
    image.assign(s.initial_image());
    t = s.branch(t, 0, p.further_operations);
    tape = s.record_recovery(image, t, 0);
  }
  EXPECT_TRUE(tape);
  verdict_cache e;
  explored_tape there(s, e);
  there.begin(s.initial_image(), 0);
  steps seen;
  auto reader = media::tape_reader::from_memory(*tape);
  while (auto event = *reader->next()) {
    if (!there.take(*event)) continue;
    if (there.acknowledged != (seen.empty() ? 0 : seen.back().first))
      seen.emplace_back(there.acknowledged, there.invoked);
    there.leave_point();
  }
  return seen;
}

TEST(Ordered, a_sync_acknowledges_what_was_committed_before_it) {
  plan p = ordered_plan("redo", "hash", 1, 5);
  p.operations = 17;
  EXPECT_EQ(acknowledgements(p, false), (steps{{5, 5}, {10, 10}, {15, 15}, {17, 17}}))
      << "the last one is the close";
}

TEST(Ordered, without_syncs_each_commit_acknowledges_itself) {
  plan p = ordered_plan("redo", "hash", 1, 0);
  p.operations = 3;
  EXPECT_EQ(acknowledgements(p, false), (steps{{1, 1}, {2, 2}, {3, 3}}));
}

TEST(Ordered, after_a_crash_durable_commits_acknowledge_the_ordered_ones_before_them) {
  plan p = ordered_plan("redo", "hash", 1, 7);
  p.operations = 3;
  p.further_operations = 9;
  EXPECT_EQ(acknowledgements(p, true), (steps{{2, 2}, {4, 4}, {6, 6}, {7, 7}, {8, 8}, {9, 9}}));
}

bool says(const findings& f, const char* words) {
  return std::ranges::any_of(
      f.violations, [&](const violation& v) { return v.what.find(words) != std::string::npos; });
}

TEST(Ordered, sees_that_nothing_persists) {
  for (const char* workload : {"sps", "hash", "rbtree", "bptree", "kv", "churn"}) {
    const auto found = explore_isolated(ordered_plan("none", workload, 1, 10), {});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(found->violations.empty()) << workload;
  }
}

// An ordered commit may return before its log is durable, so here the sync that follows is wrong.
TEST(Ordered, sees_a_sync_that_does_nothing) {
  plan p = ordered_plan("redo-async", "sps", 1, 10);
  p.mutant = *mutant_named("bulk_no_log_fence");
  settings s;
  s.recovery_depth = 1;
  s.max_violations = 1000;
  const auto found = explore_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(says(*found, "10 had been acknowledged"));
  for (const char* never : {"9 had been acknowledged", "11 had been acknowledged"})
    EXPECT_FALSE(says(*found, never));
}

// Nothing is durable yet, so the initial pool is a prefix: only the sync decides whether the same
// crash is a violation.
TEST(Ordered, what_no_sync_has_covered_may_be_lost) {
  for (const std::uint64_t sync_every : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}}) {
    plan p = ordered_plan("redo-async", "sps", 1, sync_every);
    p.mutant = *mutant_named("bulk_no_log_fence");
    p.operations = 1;
    settings s;
    s.recovery_depth = 1;
    const auto found = explore_isolated(p, s);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(
        says(*found, "the state after 0 operations was recovered, when 1 had been acknowledged"),
        sync_every != 1000);
  }
}

}  // namespace
}  // namespace stele::explore
