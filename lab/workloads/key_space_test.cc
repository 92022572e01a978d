// Draws of keys: permutations contain every key once; shares and Zipf frequencies are as requested.
#include <workloads/key_space.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace stele::workloads {
namespace {

TEST(key_space, scattered_order_is_a_permutation) {
  for (const std::size_t n : {1u, 2u, 3u, 16u, 64u, 100u, 1000u, 4096u, 30'030u}) {
    const key_space keys({.keys = n, .seed = n});
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) seen.insert(keys.scattered(i));
    EXPECT_EQ(seen.size(), n);
    EXPECT_LT(*seen.rbegin(), n);
  }
}

TEST(key_space, starts_half_full) {
  const key_space keys({.keys = 100'000, .seed = 2});
  std::size_t held = 0;
  for (std::uint64_t k = 0; k < keys.size(); ++k) held += keys.present_at_start(k);
  EXPECT_NEAR(static_cast<double>(held), 50'000, 1000);
}

TEST(key_space, draws_the_share_of_reads_asked_for) {
  const key_space keys({.keys = 10, .read_share = 0.25});
  base::rng random(1);
  std::size_t reads = 0;
  for (int i = 0; i < 100'000; ++i) reads += keys.draws_read(random);
  EXPECT_NEAR(static_cast<double>(reads), 25'000, 700);
}

TEST(key_space, fresh_keys_do_not_come_twice) {
  const key_space keys({.keys = 10, .choice = key_choice::fresh});
  base::rng random(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(keys.draw(random));
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(zipf, frequencies_fall_with_the_rank) {
  constexpr std::size_t n = 1000;
  constexpr double theta = 0.99;
  double zeta = 0;
  for (std::size_t i = 1; i <= n; ++i) zeta += std::pow(static_cast<double>(i), -theta);
  const zipf z(n, theta);
  base::rng random(7);
  std::vector<double> counts(n);
  constexpr int draws = 1'000'000;
  for (int i = 0; i < draws; ++i) ++counts.at(z.draw(random));
  EXPECT_NEAR(counts[0], draws / zeta, draws / zeta * 0.03);
  EXPECT_NEAR(counts[1], draws / zeta * std::pow(0.5, theta), draws / zeta * 0.03);
  // The generator only approximates single ranks after the second.
  double first_hundred = 0, expected = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    first_hundred += counts[i];
    expected += draws / zeta * std::pow(static_cast<double>(i + 1), -theta);
  }
  EXPECT_NEAR(first_hundred, expected, expected * 0.03);
}

TEST(zipf, small_spaces_stay_in_bounds) {
  base::rng random(8);
  for (const std::uint64_t n : {1u, 2u, 3u, 4u}) {
    const zipf z(n, 0.5);
    for (int i = 0; i < 10'000; ++i) ASSERT_LT(z.draw(random), n);
  }
}

}  // namespace
}  // namespace stele::workloads
