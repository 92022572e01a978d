// Which features meet in the mixes that seeds draw.
#include <explore/feature_mix.h>
#include <gtest/gtest.h>

#include <set>

namespace stele::explore {
namespace {

using feature = std::pair<std::string, std::string>;

std::set<std::pair<feature, feature>> pairs_of(std::uint64_t seeds, unsigned each) {
  std::set<std::pair<feature, feature>> met;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (unsigned n = 0; n < each; ++n) {
      const auto all = draw_mix(seed, n).features();
      for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = a + 1; b < all.size(); ++b) {
          const feature one(all[a].first, all[a].second), other(all[b].first, all[b].second);
          met.insert(std::minmax(one, other));
        }
    }
  return met;
}

// Each pair of values of two features that can meet does, within the seeds of a long run; and no
// seed of a million adds one.
TEST(FeatureMix, every_pair_meets) {
  const auto met = pairs_of(100, 8);
  EXPECT_EQ(met, pairs_of(2'000, 8));
  const auto has = [&](feature a, feature b) { return met.contains(std::minmax(a, b)); };
  EXPECT_TRUE(has({"beside", "grow"}, {"beside", "hold"}));
  EXPECT_TRUE(has({"beside", "other"}, {"attached", "1"}));
  EXPECT_TRUE(has({"sums", "1"}, {"shared log", "1"}));
  EXPECT_TRUE(has({"one writer", "1"}, {"attached", "1"}));
  EXPECT_TRUE(has({"one writer", "1"}, {"commits", "2"}));
  EXPECT_TRUE(has({"load", "4"}, {"threads", "3"}));
  EXPECT_FALSE(has({"on a file", "1"}, {"beside", "grow"}));
  EXPECT_FALSE(has({"on a file", "1"}, {"attached", "1"}));
}

TEST(FeatureMix, a_held_snapshot_is_taken_first) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    bool other = false;
    for (const std::string_view work : draw_mix(seed, 0).beside) {
      EXPECT_FALSE(other && work == "hold");
      other |= work != "hold";
    }
  }
}

TEST(FeatureMix, is_a_function_of_seed_and_number) {
  EXPECT_EQ(draw_mix(3, 1).features(), draw_mix(3, 1).features());
  EXPECT_NE(draw_mix(3, 1).features(), draw_mix(3, 2).features());
  EXPECT_NE(draw_mix(3, 1).features(), draw_mix(4, 1).features());
}

}  // namespace
}  // namespace stele::explore
