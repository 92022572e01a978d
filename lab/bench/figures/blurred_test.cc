// The blurred-persistence evaluation: every figure has its points; interrupted runs keep their
// results; unknown names are refused.
#include <bench/figures/blurred.h>
#include <bench/figures/blurred_parts.h>
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.keys = o.large_keys = 1024;
  o.warm_up_transactions = 200;
  return o;
}

class every_figure : public testing::TestWithParam<std::string> {};

// B12
TEST_P(every_figure, yields_all_points_and_answers_all_statements) {
  const auto c = measure_blurred(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "blurred-" + GetParam()));
  expect_every_point(*c);
  expect_every_answer(*c);
}

INSTANTIATE_TEST_SUITE_P(all, every_figure, testing::ValuesIn(blurred_figures()),
                         [](const auto& which) { return which.param; });

TEST(blurred, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  o.cancelled = [asked = 0]() mutable {
    return ++asked > 4;
  };  // called before each place and each run
  const auto c = measure_blurred("16", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
  const series* base = c->panels.front().find("base");
  ASSERT_NE(base, nullptr);
  EXPECT_TRUE(base->points.front());
  EXPECT_FALSE(base->points.back());
}

// B10
TEST(blurred, draws_a_figure_under_another_charging_rule) {
  sweep_options o = tiny();
  EXPECT_EQ(medium_of(o, 35), "delayed:35");
  o.charge = "each";
  EXPECT_EQ(medium_of(o, 35), "delayed:35");
  o.charge = "once";
  EXPECT_EQ(medium_of(o, 35), "delayed:35:stream=once");
  const auto c = measure_blurred("16", o);
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "blurred-16-once"));
  EXPECT_EQ(c->charge.name, "once");
  EXPECT_THAT(c->setting, testing::HasSubstr("delayed:150:stream=once"));
  expect_every_answer(*c);
}

TEST(blurred, refuses_a_charging_rule_that_it_does_not_have) {
  sweep_options o = tiny();
  o.charge = "standalone";
  expect_unknown(measure_blurred("16", o), "standalone");
}

TEST(blurred, refuses_a_figure_that_it_does_not_know) {
  expect_unknown(measure_blurred("8", tiny()), "8");
}

}  // namespace
}  // namespace stele::bench
