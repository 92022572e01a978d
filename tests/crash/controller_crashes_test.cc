// Crashes behind memory controllers that order writes by persist barriers. Correct controllers lose
// nothing, wrong ones do, and each crash can be replayed. Also the states that overlapping
// operations may leave.
//
// STELE_CONTROLLER_CRASHES sets the number for each workload, STELE_SEED the first run's seed.
#include <explore/consistent_cuts.h>
#include <explore/controller_crashes.h>
#include <explore/mutant_table.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/budget.h>

#include <cstdio>

namespace stele::explore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using budget::count_from;

plan plan_of(const std::string& workload, unsigned threads) {
  plan p;
  p.mechanism = "base";
  p.workload = workload;
  p.threads = threads;
  p.log_count = threads;
  p.seed = count_from("STELE_SEED", 1);
  return p;
}

class ControllerCrashes : public ::testing::TestWithParam<std::string> {};

// Operations of sps read only what they write, so operations of several threads may overlap
// (write_trace.h).
// D9
TEST_P(ControllerCrashes, every_crash_recovers) {
  findings sum;
  for (const auto& [workload, threads] : {std::pair{"sps", 1u},
                                          {"sps", 2u},
                                          {"sps", 3u},
                                          {"hash", 1u},
                                          {"rbtree", 1u},
                                          {"churn", 1u}}) {
    controller_settings s;
    s.scheduler = GetParam();
    s.crashes = count_from("STELE_CONTROLLER_CRASHES", 10'000 / budget::slowness);
    const auto found = crash_behind_controller_isolated(plan_of(workload, threads), s);
    ASSERT_TRUE(found) << found.error().message;
    for (const violation& v : found->violations)
      ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
    EXPECT_GE(found->states, s.crashes);
    sum.states += found->states, sum.distinct += found->distinct, sum.recovered += found->recovered;
    sum.recoveries += found->recoveries, sum.seconds += found->seconds;
  }
  fmt::print("  {}: {}\n", GetParam(), crash_summary_of(sum));
  std::fflush(stdout);
  EXPECT_GT(sum.distinct, sum.states / 10);
  EXPECT_GT(sum.recoveries, 0u);
}

INSTANTIATE_TEST_SUITE_P(Right, ControllerCrashes,
                         ::testing::Values("strict", "rule1", "rule2", "rules"),
                         [](const auto& one) { return one.param; });

class WrongControllers : public ::testing::TestWithParam<std::string> {};

// D9
TEST_P(WrongControllers, lose_data_and_show_where) {
  controller_settings s;
  s.scheduler = GetParam();
  s.crashes = 20'000;
  s.max_violations = 1;
  const auto found = crash_behind_controller_isolated(plan_of("sps", 2), s);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->violations.empty())
      << GetParam() << " survived " << found->states << " crashes";
  const violation& v = found->violations.front();
  fmt::print("  {}: {}\n    {}\n", GetParam(), v.what, v.line);
  const auto parsed = parse_line<controller_crash>(v.line);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(format_line(*parsed), v.line);
  const auto again = replay(*parsed);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->problem, v.what);
  EXPECT_THAT(again->explanation, StartsWith("crash after"));
}

INSTANTIATE_TEST_SUITE_P(Wrong, WrongControllers,
                         ::testing::Values("ideal", "bare", "bare_rule1", "bare_rule2",
                                           "commit_first"),
                         [](const auto& one) { return one.param; });

// A bug of the mechanism shows behind a controller too: even the strictest order does not replace a
// missing barrier.
TEST(ControllerCrashes, a_missing_fence_is_seen) {
  plan p = plan_of("sps", 1);
  p.mutant = *mutant_named("base_no_log_fence");
  controller_settings s;
  s.scheduler = "strict";
  s.crashes = 20'000;
  const auto found = crash_behind_controller_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->violations.empty());
}

TEST(ControllerCrashes, spilled_records_are_ordered_too) {
  plan p = plan_of("hash", 1);
  p.value_size = 4096;  // more than a slot of a log holds
  p.keys = 6;
  p.operations = 24;
  p.pool_size = std::size_t{1} << 18;
  for (const char* scheduler : {"rule2", "rules"}) {
    controller_settings s;
    s.scheduler = scheduler;
    s.crashes = 5'000;
    const auto found = crash_behind_controller_isolated(p, s);
    ASSERT_TRUE(found) << found.error().message;
    for (const violation& v : found->violations)
      ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
  }
}

// D5
TEST(ControllerCrashes, logs_that_have_expired_are_never_trusted) {
  std::uint64_t refused = 0, states = 0;
  for (const auto& [workload, threads] :
       {std::pair{"sps", 1u}, {"sps", 3u}, {"hash", 1u}, {"churn", 1u}}) {
    controller_settings s;
    s.crashes = count_from("STELE_CONTROLLER_CRASHES", 10'000);
    s.expired = true;
    const auto found = crash_behind_controller_isolated(plan_of(workload, threads), s);
    ASSERT_TRUE(found) << found.error().message;
    for (const violation& v : found->violations)
      ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
    refused += found->refused, states += found->states;
  }
  fmt::print("  {} crashes, {} refused\n", states, refused);
  EXPECT_GT(refused, states / 10);
  EXPECT_LT(refused, states) << "lines that no longer count may expire";
}

TEST(ControllerCrashes, an_expired_log_that_is_trusted_is_seen) {
  plan p = plan_of("sps", 1);
  p.mutant = *mutant_named("base_no_checksum");
  controller_settings s;
  s.crashes = 20'000;
  s.expired = true;
  const auto found = crash_behind_controller_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->violations.empty());
  const auto again = replay(*parse_line<controller_crash>(found->violations.front().line));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->problem, found->violations.front().what);
}

TEST(ControllerCrashes, refuses_a_scheduler_that_it_does_not_know) {
  controller_settings s;
  s.scheduler = "nonesuch";
  const auto found = crash_behind_controller(plan_of("sps", 1), s);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::invalid_argument);
  EXPECT_THAT(found.error().message, HasSubstr("nonesuch"));
}

TEST(ControllerCrashes, a_line_without_a_crash_is_refused) {
  EXPECT_EQ(replay(controller_crash{.run_plan = plan_of("sps", 1)}).error().code,
            errc::invalid_argument);
}

// Three swaps: 1 overlapped with 0, and 2 came after both.
TEST(consistent_cuts, an_operation_is_there_when_those_that_ended_before_it_are) {
  workloads::parameters content;
  content.keys = 16;
  const auto w = workloads::make_workload("sps", content);
  using kind = workloads::operation::kind;
  const std::vector<workloads::operation> all = {
      {kind::swap, 0, 1}, {kind::swap, 2, 3}, {kind::swap, 4, 5}};
  const auto digest = [&](std::initializer_list<int> there) {
    const auto model = (*w)->make_model();
    for (const int i : there) model->apply(all[static_cast<std::size_t>(i)]);
    return model->digest();
  };
  const consistent_cuts states(**w, all, {{}, {0}, {}});
  EXPECT_EQ(states.states(), 5u);
  EXPECT_TRUE(states.allows(digest({}), 0, {}, 0));
  EXPECT_TRUE(states.allows(digest({1}), 0, {}, 2));
  EXPECT_FALSE(states.allows(digest({1}), 0, {}, 1)) << "not invoked yet";
  EXPECT_FALSE(states.allows(digest({1}), 1, {}, 2)) << "0 was acknowledged";
  EXPECT_FALSE(states.allows(digest({0}), 0, std::vector<std::uint64_t>{1}, 2))
      << "1 was acknowledged";
  EXPECT_FALSE(states.allows(digest({2}), 0, {}, 3)) << "2 began after 0 and 1 had ended";
  EXPECT_FALSE(states.allows(digest({0, 2}), 0, {}, 3));
  EXPECT_TRUE(states.allows(digest({0, 1, 2}), 3, {}, 3));
}

}  // namespace
}  // namespace stele::explore
