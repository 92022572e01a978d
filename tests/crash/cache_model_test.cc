// The cache and its model on a few stores with known outcomes.
#include <explore/cache_model.h>
#include <explore/crash_model.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stele::explore {
namespace {

constexpr auto none = cache_sets::none;

// The lines that leave a cache of one set of four ways, when these lines are written in order.
std::vector<std::uint32_t> leaving(std::string_view policy,
                                   const std::vector<std::uint32_t>& written,
                                   std::uint64_t seed = 1) {
  cache_sets cache({policy, 4, 4});
  cache.reset(seed);
  std::vector<std::uint32_t> left;
  for (const std::uint32_t line : written)
    if (const std::uint32_t leaves = cache.write(line); leaves != none) left.push_back(leaves);
  return left;
}
using lines = std::vector<std::uint32_t>;

TEST(CacheSets, lru_lets_the_line_go_that_was_written_longest_ago) {
  EXPECT_EQ(leaving("lru", {1, 2, 3, 4, 5, 6}), (lines{1, 2}));
  EXPECT_EQ(leaving("lru", {1, 2, 3, 4, 1, 5, 6, 7}), (lines{2, 3, 4}));
  EXPECT_EQ(leaving("lru", {1, 2, 3, 4, 4, 3, 2, 1, 5, 6, 7, 8}), (lines{4, 3, 2, 1}));
}

// After 1 2 3 4 the root points to the half with 1 and 2, and there to 1. Storing 5 turns the root
// to the half with 3 and 4, where 4 was used last: so 3 leaves next, not 2.
TEST(CacheSets, plru_follows_the_tree_away_from_what_was_written) {
  EXPECT_EQ(leaving("plru", {1, 2, 3, 4, 5, 6, 7, 8}), (lines{1, 3, 2, 4}));
  EXPECT_EQ(leaving("plru", {1, 2, 3, 4, 1, 5}), (lines{3})) << "exact lru would let 2 go";
}

TEST(CacheSets, bip_lets_the_newcomer_go_nearly_always) {
  lines written;
  for (std::uint32_t line = 0; line < 3200; ++line) written.push_back(line);
  const auto left = leaving("bip", written);
  std::size_t newest = 0;
  for (std::size_t i = 0; i < left.size(); ++i) newest += left[i] == i + 3;
  EXPECT_GT(newest, left.size() * 9 / 10);
  EXPECT_LT(newest, left.size()) << "one in 32 stays";
}

TEST(CacheSets, bip_keeps_what_is_written_again) {
  EXPECT_EQ(leaving("bip", {1, 2, 3, 4, 1, 2, 3, 4, 4, 5, 6}).at(0), 1u);
  std::set<std::uint32_t> all;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    all.insert(leaving("bip", {1, 2, 3, 4, 4, 3, 2, 1, 5, 6}, seed).at(1));
  EXPECT_EQ(all, (std::set<std::uint32_t>{3, 5}))
      << "5 leaves at once, unless it came in as the last to leave";
}

TEST(CacheSets, random_lets_every_line_go_equally_often) {
  std::array<int, 5> count{};
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    ++count[leaving("random", {1, 2, 3, 4, 5}, seed).at(0)];
  for (std::size_t line = 1; line <= 4; ++line) EXPECT_NEAR(count[line], 1000, 150);
}

TEST(CacheSets, the_same_seed_lets_the_same_lines_go) {
  lines written;
  for (std::uint32_t i = 0; i < 500; ++i)
    written.push_back(static_cast<std::uint32_t>(base::mix(i) % 20));
  for (const std::string_view policy : all_policies())
    EXPECT_EQ(leaving(policy, written, 7), leaving(policy, written, 7));
  EXPECT_NE(leaving("random", written, 7), leaving("random", written, 8));
}

TEST(CacheSets, lines_of_other_sets_and_clean_lines_displace_none) {
  cache_sets cache({"lru", 4, 2});
  cache.reset(1);
  EXPECT_EQ(cache.write(0), none);
  EXPECT_EQ(cache.write(1), none);
  EXPECT_EQ(cache.write(2), none);
  EXPECT_EQ(cache.write(3), none);
  EXPECT_TRUE(cache.clean(0));
  EXPECT_FALSE(cache.clean(0));
  EXPECT_EQ(cache.write(4), none) << "0 left, and was clean";
  EXPECT_TRUE(cache.invalidate(2));
  EXPECT_FALSE(cache.invalidate(2));
  EXPECT_EQ(cache.write(6), none) << "in the place of 2";
  EXPECT_EQ(cache.write(8), 4u);
}

TEST(CacheSets, refuses_what_is_no_cache) {
  EXPECT_TRUE(check_geometry({"lru", 64, 4}));
  for (const cache_geometry bad : {cache_geometry{"lru", 0, 4},
                                   {"lru", 64, 0},
                                   {"none", 64, 4},
                                   {"lru", 66, 4},
                                   {"lru", 1024, 128}}) {
    const auto checked = check_geometry(bad);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, errc::invalid_argument);
  }
}

using values = std::set<std::uint64_t>;

// A cache of one set of two lines; media of 64 lines.
class CacheModel : public ::testing::Test {
 protected:
  CacheModel() {
    media.rehash();
    model.start(media, 1);
  }
  void store(std::uint32_t line, std::uint64_t value, unsigned word = 0) {
    model.store(line * line_size + word * 8, std::as_bytes(std::span(&value, 1)));
  }
  void stream(std::uint32_t line, std::uint64_t value, unsigned thread = 0) {
    const std::vector<std::uint64_t> words(8, value);
    model.stream(thread, line * line_size, std::as_bytes(std::span(words)));
  }
  void flush(std::uint32_t line, unsigned thread = 0) { model.flush(thread, line * line_size, 1); }
  std::uint64_t on_media(std::uint32_t line, unsigned word = 0) const {
    std::uint64_t value;
    std::memcpy(&value, media.line(line) + word * 8, 8);
    return value;
  }
  // The values of a word that crashes may leave now.
  values after_crashes(std::uint32_t line, unsigned word = 0) {
    values left;
    const std::uint64_t before = media.hash().all;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      model.crash(seed);
      left.insert(on_media(line, word));
      model.undo();
    }
    EXPECT_EQ(media.hash().all, before);
    return left;
  }
  hashed_image media{4096, 0, 0};
  cache_model model{{"lru", 2, 2}, 4096};
};

TEST_F(CacheModel, a_dirty_line_is_lost) {
  store(0, 1);
  EXPECT_EQ(after_crashes(0), values{0});
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{0});
}

TEST_F(CacheModel, a_line_that_leaves_is_written_back_as_it_is_then) {
  store(0, 1);
  store(1, 2);
  store(0, 3, 1);
  store(2, 4);  // 1 is evicted
  EXPECT_EQ(on_media(0), 0u);
  EXPECT_EQ(on_media(1), 2u);
  store(3, 5);  // 0 is evicted
  EXPECT_EQ(on_media(0), 1u);
  EXPECT_EQ(on_media(0, 1), 3u);
  EXPECT_EQ(on_media(2), 0u);
}

TEST_F(CacheModel, a_flush_may_be_lost_until_its_threads_fence) {
  store(0, 1);
  flush(0, 3);
  EXPECT_EQ(after_crashes(0), (values{0, 1}));
  model.fence(2);
  EXPECT_EQ(after_crashes(0), (values{0, 1}));
  model.fence(3);
  EXPECT_EQ(after_crashes(0), values{1});
}

TEST_F(CacheModel, a_flush_takes_the_line_as_it_is_then) {
  store(0, 1);
  flush(0);
  store(0, 2);
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{1});
}

TEST_F(CacheModel, an_older_flush_does_not_undo_a_newer_one) {
  store(0, 1);
  flush(0, 0);
  store(0, 2);
  flush(0, 1);
  EXPECT_EQ(after_crashes(0), (values{0, 1, 2}));
  model.fence(1);
  EXPECT_EQ(after_crashes(0), values{2});
  model.fence(0);
  EXPECT_EQ(on_media(0), 2u);
}

TEST_F(CacheModel, a_flush_of_what_media_has_follows_one_that_is_on_its_way) {
  store(0, 1);
  flush(0);
  store(0, 0);
  flush(0);
  model.fence(0);
  EXPECT_EQ(on_media(0), 0u);
}

TEST_F(CacheModel, a_flush_that_is_on_its_way_does_not_undo_what_left_the_cache_since) {
  store(0, 1);
  flush(0);
  store(0, 2);
  store(1, 1);
  store(2, 1);  // 0 is evicted
  EXPECT_EQ(after_crashes(0), values{2});
  model.fence(0);
  EXPECT_EQ(on_media(0), 2u);
}

TEST_F(CacheModel, a_flush_covers_what_another_thread_flushed) {
  store(0, 1);
  flush(0, 0);
  flush(0, 1);
  model.fence(1);
  EXPECT_EQ(after_crashes(0), values{1});
}

TEST_F(CacheModel, streamed_words_may_be_lost_one_by_one_until_the_fence) {
  stream(0, 7);
  std::set<unsigned> arrived;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    model.crash(seed);
    unsigned words = 0;
    for (unsigned w = 0; w < 8; ++w) words |= static_cast<unsigned>(on_media(0, w) == 7) << w;
    arrived.insert(words);
    model.undo();
  }
  EXPECT_GT(arrived.size(), 60u);
  EXPECT_TRUE(arrived.contains(0) && arrived.contains(255));
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{7});
}

TEST_F(CacheModel, a_stream_passes_by_the_cache) {
  store(0, 1);
  store(1, 2);
  stream(2, 7);
  stream(3, 7);
  EXPECT_EQ(on_media(0), 0u) << "nothing was displaced";
}

TEST_F(CacheModel, a_stream_over_a_dirty_line_writes_that_back_first) {
  store(0, 1);
  store(0, 9, 3);
  stream(0, 7);
  EXPECT_EQ(on_media(0), 1u);
  EXPECT_EQ(after_crashes(0, 3), (values{9, 7}));
  model.fence(0);
  EXPECT_EQ(after_crashes(0, 3), values{7});
}

TEST_F(CacheModel, a_store_over_a_stream_is_lost_alone) {
  stream(0, 7);
  store(0, 8);
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{7});
  flush(0);
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{8});
}

TEST_F(CacheModel, streams_of_two_threads_are_durable_by_their_own_fences) {
  stream(0, 7, 0);
  stream(1, 8, 1);
  model.fence(0);
  EXPECT_EQ(after_crashes(0), values{7});
  EXPECT_EQ(after_crashes(1), (values{0, 8}));
}

TEST_F(CacheModel, an_older_stream_does_not_undo_a_newer_one_nor_the_other_way_round) {
  stream(0, 7, 0);
  stream(0, 8, 1);
  model.fence(1);
  model.fence(0);
  EXPECT_EQ(on_media(0), 8u);
}

TEST_F(CacheModel, a_bulk_persist_makes_its_range_durable_and_no_more) {
  store(0, 1);
  store(1, 2);
  model.bulk(0, line_size);
  EXPECT_EQ(on_media(0), 1u);
  EXPECT_EQ(after_crashes(1), values{0});
}

TEST_F(CacheModel, a_store_over_two_lines_dirties_both) {
  const std::vector<std::uint64_t> words(10, 5);
  model.store(line_size - 16, std::as_bytes(std::span(words)));
  EXPECT_EQ(after_crashes(0, 6), values{0});
  model.flush(0, 0, 2 * line_size);
  model.fence(0);
  EXPECT_EQ(on_media(0, 6), 5u);
  EXPECT_EQ(on_media(0, 5), 0u);
  EXPECT_EQ(on_media(1, 7), 5u);
}

// Random runs of two threads on a few lines, in both models at once.
class both_models {
 public:
  explicit both_models(std::uint64_t seed)
      : random_(seed),
        cache_({all_policies()[seed % 4], 4, std::size_t{1} << seed / 4 % 3}, memory) {
    media_.rehash();
    durable_.rehash();
    cache_.start(media_, seed);
    allowed_.start(durable_);
  }
  void step() {
    const unsigned thread = static_cast<unsigned>(random_.below(2)),
                   kind = static_cast<unsigned>(random_.below(16));
    const std::uint64_t line = random_.below(6) * line_size, word = random_.below(8) * 8,
                        value = random_.below(3);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    if (kind < 7) {
      cache_.store(line + word, bytes), allowed_.store(thread, line + word, bytes);
    } else if (kind < 9) {
      const std::uint64_t words[2] = {value, random_.below(3)};
      cache_.stream(thread, line + word % 56, std::as_bytes(std::span(words)));
      allowed_.stream(thread, line + word % 56, std::as_bytes(std::span(words)));
    } else if (kind < 13) {
      cache_.flush(thread, line, 8), allowed_.flush(thread, line, 8);
    } else {
      cache_.fence(thread), allowed_.fence(thread);
    }
  }
  // Whether a crash leaves each line in a state that the crash model allows.
  bool crash(std::uint64_t seed) {
    cache_.crash(seed);
    bool fine = true;
    for (std::uint32_t line = 0; line < 6; ++line) fine = fine && allowed(line);
    cache_.undo();
    return fine;
  }

 private:
  static constexpr std::size_t memory = 4096;
  bool allowed(std::uint32_t line) const {
    if (std::ranges::find(allowed_.pending(), line) == allowed_.pending().end())
      return std::memcmp(media_.line(line), durable_.line(line), line_size) == 0;
    for (std::uint64_t option = 0; option < allowed_.options(line); ++option)
      if (std::memcmp(allowed_.after(line, option).data(), media_.line(line), line_size) == 0)
        return true;
    return false;
  }

  base::rng random_;
  hashed_image media_{memory, 0, 0}, durable_{memory, 0, 0};
  cache_model cache_;
  crash_model allowed_{memory};
};

TEST(BothModels, the_cache_leaves_only_what_the_crash_model_allows) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    both_models both(seed);
    for (std::uint64_t n = 0; n < 120; ++n) {
      both.step();
      ASSERT_TRUE(both.crash(n)) << "seed " << seed << ", step " << n;
    }
  }
}

TEST_F(CacheModel, starting_again_forgets_everything) {
  store(0, 1);
  flush(0);
  stream(1, 7);
  hashed_image fresh(4096, 0, 0);
  fresh.rehash();
  model.start(fresh, 2);
  model.fence(0);
  store(0, 0);
  EXPECT_EQ(std::count(fresh.data(), fresh.data() + fresh.size(), std::byte{0}), 4096);
}

}  // namespace
}  // namespace stele::explore
