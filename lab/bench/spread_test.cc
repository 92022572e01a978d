// Intervals against closed forms: constant runs, medians of few runs, values of several medians.
#include <bench/spread.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace stele::bench {
namespace {

double mean_of(std::span<const double> runs, drawing drawn) {
  double sum = 0;
  for (const std::size_t i : drawn) sum += runs[i];
  return sum / static_cast<double>(drawn.size());
}

double ratio(std::span<const double> v) {
  return v[0] / v[1];
}

TEST(spread, keeps_its_runs_in_their_order) {
  const spread s = spread_of({3, 1, 2, 9});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_EQ(s.max, 9);
  EXPECT_THAT(s.runs, testing::ElementsAre(3, 1, 2, 9));
}

TEST(interval, of_constant_runs_is_a_point) {
  EXPECT_EQ(interval_of(spread_of({7, 7, 7, 7, 7})), (interval{7, 7}));
}

TEST(interval, of_one_run_or_none_is_unknown) {
  EXPECT_EQ(interval_of(spread_of({7})), std::nullopt);
  EXPECT_EQ(interval_of({1, 2, 3}), std::nullopt);
}

// The median of five drawn runs is the least one with a probability of 5.8 %, which is over 2.5 %;
// that of seven with 1.0 %, and one of the two least with 10.9 %.
TEST(interval, of_a_median_reaches_to_the_run_that_the_binomial_distribution_names) {
  EXPECT_EQ(interval_of(spread_of({4, 1, 5, 2, 3})), (interval{1, 5}));
  EXPECT_EQ(interval_of(spread_of({4, 1, 5, 2, 3, 7, 6})), (interval{2, 6}));
  EXPECT_EQ(interval_of(spread_of({2, 3, 1})), (interval{1, 3}));
}

// The mean of 400 numbers 0 to 399: their standard deviation over the root of their number, times
// 1.96.
TEST(interval, of_a_mean_is_that_of_the_normal_distribution) {
  std::vector<double> runs(400);
  std::iota(runs.begin(), runs.end(), 0);
  const interval i = bootstrap(runs.size(), [&](drawing d) { return mean_of(runs, d); });
  const double half = 1.96 * std::sqrt((400.0 * 400 - 1) / 12 / 400);
  EXPECT_NEAR(i.low, 199.5 - half, 0.1 * half);
  EXPECT_NEAR(i.high, 199.5 + half, 0.1 * half);
}

TEST(interval, is_a_function_of_the_seed) {
  std::vector<double> runs(30);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = std::sqrt(static_cast<double>(i));
  const auto mean = [&](drawing d) { return mean_of(runs, d); };
  EXPECT_EQ(bootstrap(30, mean, 5), bootstrap(30, mean, 5));
  EXPECT_NE(bootstrap(30, mean, 5), bootstrap(30, mean, 6));
}

TEST(interval, leaves_out_what_is_not_finite) {
  const interval i = bootstrap(2, [](drawing d) { return d[0] == 0 ? std::nan("") : 3.0; });
  EXPECT_EQ(i, (interval{3, 3}));
  EXPECT_TRUE(std::isnan(bootstrap(2, [](drawing) { return HUGE_VAL; }).low));
}

// A machine that slows both down in the same run leaves their ratio as it is.
TEST(combined, draws_runs_that_were_measured_side_by_side_together) {
  const spread a = spread_of({10, 20, 30, 40, 50}), b = spread_of({5, 10, 15, 20, 25});
  const spread s = combined({&a, &b}, ratio);
  EXPECT_EQ(s.median, 2);
  EXPECT_THAT(s.runs, testing::Each(2));
  EXPECT_EQ(interval_of(s), (interval{2, 2}));
}

TEST(combined, of_medians_reaches_from_the_least_to_the_most) {
  const spread a = spread_of({1, 2, 3, 4, 5}), one = spread_of({2, 2, 2, 2, 2});
  const spread s = combined({&a, &one}, ratio);
  EXPECT_EQ(s.median, 1.5);
  EXPECT_EQ(interval_of(s), (interval{0.5, 2.5}));
}

TEST(combined, takes_a_part_without_runs_as_known) {
  const spread a = spread_of({1, 2, 3, 4, 5}), known = {4, 4, 4};
  EXPECT_EQ(interval_of(combined({&a, &known}, ratio)), (interval{0.25, 1.25}));
  const spread ends = {1, 2, 4};
  const spread s = combined({&known, &ends}, ratio);
  EXPECT_EQ(s.median, 2);
  EXPECT_EQ(interval_of(s), std::nullopt);
}

TEST(combined, of_different_numbers_of_runs_has_no_interval) {
  const spread a = spread_of({1, 2, 3}), b = spread_of({1, 1});
  const spread s = combined({&a, &b}, ratio);
  EXPECT_EQ(s.median, 2);
  EXPECT_EQ(s.max, 3);
  EXPECT_EQ(interval_of(s), std::nullopt);
}

}  // namespace
}  // namespace stele::bench
