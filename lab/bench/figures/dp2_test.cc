// The evaluation of DP2: every figure has its series and points and answers its statements;
// interrupted runs keep their results; unknown names are refused.
#include <bench/figures/dp2.h>
#include <bench/figures/dp2_parts.h>
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.keys = o.large_keys = 512;
  o.traced_operations = 48;
  o.traced_keys = 256;
  return o;
}

class every_dp2_figure : public testing::TestWithParam<std::string> {};

// D10
TEST_P(every_dp2_figure, yields_all_points_and_answers_all_statements) {
  const auto c = measure_dp2(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "dp2-" + GetParam()));
  ASSERT_FALSE(c->claims.empty());
  expect_every_answer(*c);
  expect_every_point(*c);
}

INSTANTIATE_TEST_SUITE_P(all, every_dp2_figure, testing::ValuesIn(dp2_figures()),
                         [](const auto& which) { return which.param; });

TEST(dp2, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  o.cancelled = [asked = 0]() mutable {
    return ++asked > 120;
  };  // also called for each recorded operation
  const auto c = measure_dp2("6", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
}

// D7
TEST(dp2, fences_of_the_throughput_figures_wait_if_so_wished) {
  sweep_options o = tiny();
  const auto media_of = [&o] {
    std::vector<std::string> media;
    for (const entry& e : dp2::systems(o)) {
      task t;
      e.own(t);
      media.push_back(t.media);
    }
    return media;
  };
  EXPECT_THAT(media_of(), testing::Each(testing::Not(testing::EndsWith(":waits"))));
  o.charge = "waits";
  EXPECT_THAT(media_of(), testing::Each(testing::EndsWith(":waits")));
  const auto c = measure_dp2("7", o);
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "dp2-7-waits"));
  EXPECT_EQ(c->charge.name, "waits");
  const auto simulated = measure_dp2("5", o);
  ASSERT_FALSE(simulated);
  EXPECT_THAT(simulated.error().message, testing::HasSubstr("no charging rule acts on dp2-5"));
  EXPECT_THAT(dp2_timed_figures(), testing::ElementsAre("7", "9", "10"));
}

TEST(dp2, refuses_a_figure_that_it_does_not_know) {
  expect_unknown(measure_dp2("3", tiny()), "3");
}

// The gain that the rules may have for one thread: of records, commit line, home and truncation,
// the records need no time of their own.
TEST(dp2, rules_save_one_thread_a_quarter_of_the_time_at_most) {
  const auto trace = dp2::trace_of(tiny(), "sps", 8, 1);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto strict = dp2::bandwidth_of(*trace, {"strict", 1e7}),
             rules = dp2::bandwidth_of(*trace, {"rules", 1e7}),
             ideal = dp2::bandwidth_of(*trace, {"ideal", 1e7});
  ASSERT_TRUE(strict && rules && ideal);
  EXPECT_GT(*rules, *strict);
  EXPECT_LT(*rules, *strict * 4 / 3 * 1.01);
  EXPECT_GT(*ideal, *rules);
}

// For one thread rule 2 lets a truncation pass the next transaction's records, and nothing else.
TEST(dp2, rule_2_gains_by_truncations_alone_for_one_thread) {
  const auto trace = dp2::trace_of(tiny(), "sps", 8, 1);
  ASSERT_TRUE(trace) << trace.error().message;
  for (const bool truncations : {true, false}) {
    const auto strict = dp2::bandwidth_of(*trace, {"strict", 1e7, "log", truncations}),
               rule2 = dp2::bandwidth_of(*trace, {"bare_rule2", 1e7, "log", truncations}),
               rule1 = dp2::bandwidth_of(*trace, {"bare_rule1", 1e7, "log", truncations});
    ASSERT_TRUE(strict && rule2 && rule1);
    EXPECT_GT(*rule1, *strict * 1.2);
    if (truncations)
      EXPECT_GT(*rule2, *strict * 1.2);
    else
      EXPECT_EQ(*rule2, *strict);
  }
}

TEST(dp2, a_shorter_retention_of_logs_is_faster_and_no_shorter_one_is_refused) {
  const auto trace = dp2::trace_of(tiny(), "hash", 64, 2);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto unified = dp2::bandwidth_of(*trace, {"strict", 1e7}),
             dual = dp2::bandwidth_of(*trace, {"strict", 1e4});
  ASSERT_TRUE(unified && dual);
  EXPECT_GT(*dual, *unified);
  EXPECT_LT(*dual, *unified * 1.7);
  EXPECT_FALSE(dp2::bandwidth_of(*trace, {"strict", 5}));
}

TEST(dp2, counts_writes_by_their_addresses) {
  const auto trace = dp2::trace_of(tiny(), "sps", 8, 1);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto sums = dp2::count_writes(*trace);
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->commit, 2 * 48u);
  EXPECT_GE(sums->log, 48u);
  EXPECT_GE(sums->data, 48u);
}

}  // namespace
}  // namespace stele::bench
