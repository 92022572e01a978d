// Known miss ratios of scans, for each replacement policy.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/cache/cache_array.h>

namespace stele::sim {
namespace {

constexpr unsigned ways = 16;

// Scans lines 0 .. lines-1 repeatedly in one set; returns the miss ratio of the second half of the
// rounds.
double misses_of_scan(std::string_view policy, std::uint64_t lines, unsigned rounds = 400) {
  auto cache = cache_array::make(ways * 64, ways, policy, 7);
  std::uint64_t missed = 0;
  for (unsigned round = 0; round < 2 * rounds; ++round)
    for (std::uint64_t line = 0; line < lines; ++line) {
      if (const auto p = cache->find(line); p != cache_array::none) {
        cache->touch(p);
        continue;
      }
      missed += round >= rounds;
      cache->fill(cache->find_victim(line), line);
    }
  return static_cast<double>(missed) / static_cast<double>(rounds * lines);
}

TEST(cache_array, lru_misses_all_of_a_scan_one_line_too_long) {
  EXPECT_EQ(misses_of_scan("lru", ways - 1), 0);
  EXPECT_EQ(misses_of_scan("lru", ways), 0);
  EXPECT_EQ(misses_of_scan("lru", ways + 1), 1);
}

TEST(cache_array, pseudo_lru_keeps_what_fits) {
  EXPECT_EQ(misses_of_scan("plru", ways - 1), 0);
  EXPECT_EQ(misses_of_scan("plru", ways), 0);
}

// While everything misses, the tree visits all ways in turn: a line leaves just before it is
// requested again, as with LRU.
TEST(cache_array, pseudo_lru_misses_all_of_a_scan_one_line_too_long) {
  EXPECT_EQ(misses_of_scan("plru", ways + 1), 1);
}

// Nearly all lines are inserted as the next victim, so a scan keeps all ways but one: 2 of 17 lines
// miss, and a little more each 32nd time.
TEST(cache_array, bimodal_insertion_keeps_most_of_a_scan_one_line_too_long) {
  EXPECT_EQ(misses_of_scan("bip", ways), 0);
  const double missed = misses_of_scan("bip", ways + 1);
  EXPECT_GT(missed, 1.0 / 17);
  EXPECT_LT(missed, 4.0 / 17);
}

// Each miss evicts a random line, so a line survives with some probability until its next request.
TEST(cache_array, random_keeps_a_part_of_a_scan_one_line_too_long) {
  EXPECT_EQ(misses_of_scan("random", ways), 0);
  const double missed = misses_of_scan("random", ways + 1);
  EXPECT_GT(missed, 0.05);
  EXPECT_LT(missed, 0.5);
}

// Stamps of four bytes run out after 2^32 touches; a cache that has just begun is the model.
TEST(cache_array, lru_keeps_its_order_when_its_stamps_run_out) {
  for (const unsigned ways_of_set : {1u, 3u, 16u}) {
    auto aged = cache_array::make(8 * ways_of_set * 64, ways_of_set, "lru", 1),
         fresh = cache_array::make(8 * ways_of_set * 64, ways_of_set, "lru", 1);
    base::rng random(ways_of_set);
    for (unsigned n = 0; n < 20'000; ++n) {
      if (n % 1000 == 500) aged->age_to(~std::uint32_t{0} - 300 - n % 7);
      const std::uint64_t line = random.below(16 * ways_of_set);
      const auto p = fresh->find(line);
      ASSERT_EQ(aged->find(line), p) << ways_of_set << " ways, access " << n;
      if (p == cache_array::none) {
        const auto victim = fresh->find_victim(line);
        ASSERT_EQ(aged->find_victim(line), victim) << ways_of_set << " ways, access " << n;
        aged->fill(victim, line), fresh->fill(victim, line);
      } else if (random.below(16) == 0) {
        aged->invalidate(p), fresh->invalidate(p);
      } else {
        aged->touch(p), fresh->touch(p);
      }
    }
  }
}

TEST(cache_array, chooses_only_among_allowed_ways) {
  for (const replacement_policy& p : replacement_policies()) {
    auto cache = cache_array::make(8 * 64, 8, p.name, 1);
    for (std::uint64_t line = 0; line < 8; ++line) cache->fill(cache->find_victim(line), line);
    for (unsigned n = 0; n < 100; ++n) EXPECT_EQ(cache->find_victim(100 + n, 0x20), 5u) << p.name;
    EXPECT_EQ(cache->find_victim(100, 0), cache_array::none) << p.name;
  }
}

TEST(cache_array, counts_that_are_no_power_of_two_work) {
  auto cache = cache_array::make(3 * 11 * 64, 11, "plru", 1);
  ASSERT_TRUE(cache);
  for (std::uint64_t line = 0; line < 1000; ++line) {
    cache->fill(cache->find_victim(line), line);
    EXPECT_NE(cache->find(line), cache_array::none);
  }
}

TEST(cache_array, refuses_what_is_no_cache) {
  EXPECT_FALSE(cache_array::make(0, 4, "lru", 1));
  EXPECT_FALSE(cache_array::make(4096, 0, "lru", 1));
  EXPECT_FALSE(cache_array::make(4096, 33, "lru", 1));
  EXPECT_FALSE(cache_array::make(100, 1, "lru", 1));
  const auto unknown = cache_array::make(4096, 4, "clock", 1);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("lru, plru, bip, random"), std::string::npos);
}

}  // namespace
}  // namespace stele::sim
