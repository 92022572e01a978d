// Percentiles of a histogram, compared with those of the sorted values.
#include <base/histogram.h>
#include <base/rng.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stele::base {
namespace {

TEST(histogram, empty_has_zero_percentiles) {
  const histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.percentile(50), 0u);
}

TEST(histogram, small_values_are_exact) {
  histogram h;
  for (std::uint64_t v = 1; v <= 30; ++v) h.record(v);
  EXPECT_EQ(h.percentile(0), 1u);
  EXPECT_EQ(h.percentile(50), 15u);
  EXPECT_EQ(h.percentile(100), 30u);
}

TEST(histogram, percentiles_are_within_a_class_of_the_sorted_values) {
  rng random(7);
  histogram h;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random() >> random.below(64));
    h.record(values.back());
  }
  std::ranges::sort(values);
  for (const double percent : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank =
        static_cast<std::size_t>(percent / 100 * static_cast<double>(values.size()) + 0.5);
    const std::uint64_t exact = values[std::max<std::size_t>(rank, 1) - 1];
    EXPECT_GE(h.percentile(percent), exact) << percent;
    EXPECT_LE(h.percentile(percent) - exact, exact / 32) << percent;
  }
}

TEST(histogram, merge_is_recording_both) {
  histogram a, b, both;
  for (std::uint64_t v = 0; v < 1000; ++v) {
    (v % 3 == 0 ? a : b).record(v * v);
    both.record(v * v);
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  for (double percent = 0; percent <= 100; percent += 0.5)
    EXPECT_EQ(a.percentile(percent), both.percentile(percent));
}

TEST(histogram, takes_the_largest_value) {
  histogram h;
  h.record(~std::uint64_t{0});
  EXPECT_EQ(h.percentile(50), ~std::uint64_t{0});
}

}  // namespace
}  // namespace stele::base
