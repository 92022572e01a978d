// The home map against an array of places, its usage against a count, and readers beside a writer.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <published/log_structured/home_map.h>

#include <bit>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

namespace stele::storage {
namespace {

constexpr std::uint64_t first_word = 512, chunk_words = 128, chunks = 1024, home_words = 4096;

struct bed {
  explicit bed(bool two_layers = true, bool lock_free = true, std::uint64_t words = home_words,
               std::uint32_t words_of_chunk = chunk_words)
      : usage(first_word, words_of_chunk, chunk_words * chunks / words_of_chunk),
        map({.home_words = words,
             .log_words = first_word + chunk_words * chunks,
             .two_layers = two_layers,
             .lock_free = lock_free,
             .cached_groups = 64,
             .media = media.data()},
            usage, epochs) {
    std::iota(media.begin(), media.end(), 0);  // a word of the log is the number of its place
  }

  // Live words are counted before the map changes, as in a commit.
  void put(home_map::mapped_range p, const home_map::cache* c = nullptr) {
    ASSERT_TRUE(map.reserve(writer, 1));
    usage.add_live(p.at, live_words_of(p.at, p.words));
    map.map(writer, p, c);
    for (std::uint32_t i = 0; i < p.words; ++i) model[p.home + i] = advanced(p.at, i);
  }
  void compare() {
    for (std::uint64_t home = 0; home < home_words;) {
      const auto f = map.find(home);
      ASSERT_GE(f.run, 1u);
      for (std::uint32_t i = 0; i < f.run && home < home_words; ++i, ++home)
        ASSERT_EQ(advanced(f.at, i), at(home)) << home;
    }
  }
  // Of the words that the word cache has.
  void compare_cached() {
    for (std::uint64_t home = 0, value; home < home_words; ++home)
      if (map.cached_word(home, value)) {
        ++cached;
        ASSERT_EQ(value, is_data(at(home)) ? at(home) : 0) << home;
      }
  }
  log_address at(std::uint64_t home) const {
    const auto found = model.find(home);
    return found == model.end() ? 0 : found->second;
  }
  // Live data words of a chunk, from the model; without entry headers, one for each range.
  std::uint64_t live_data(std::uint32_t chunk) const {
    std::uint64_t n = 0;
    for (const auto& [home, p] : model) n += is_data(p) && usage.chunk_of(p) == chunk ? 1 : 0;
    return n;
  }

  std::vector<std::uint64_t> media = std::vector<std::uint64_t>(first_word + chunk_words * chunks);
  chunk_usage usage;
  base::epochs epochs{4};
  home_map map;
  std::uint64_t cached = 0;  // words that compare_cached() has seen
  home_map::writer writer;
  std::map<std::uint64_t, log_address> model;
};

home_map::mapped_range random_piece(base::rng& random, log_address& next, bool tombstones) {
  const std::uint64_t region = random.below(4) * format::region_words,
                      from = random.below(format::region_words);
  const auto words = static_cast<std::uint32_t>(
      1 + random.below(
              std::min<std::uint64_t>(random.below(2) == 0 ? 4 : 90, format::region_words - from)));
  if ((next - first_word) % chunk_words + words > chunk_words)
    next += chunk_words - (next - first_word) % chunk_words;  // no entry crosses into another chunk
  home_map::mapped_range p{region + from, words, next};
  next += 1 + words;
  if (tombstones && random.below(5) == 0) p.at |= tombstone_bit;
  return p;
}

class home_map_shapes : public ::testing::TestWithParam<std::pair<bool, bool>> {};

// L5
TEST_P(home_map_shapes, agrees_with_an_array_through_every_overlap) {
  bed b(GetParam().first, GetParam().second);
  base::rng random(3);
  log_address next = first_word + 8;
  home_map::cache cache(64);
  for (int i = 0; i < 1500; ++i) {
    b.put(random_piece(random, next, true), i % 2 == 0 ? &cache : nullptr);
    for (int k = 0; k < 8; ++k) {
      const std::uint64_t home = random.below(4 * format::region_words);
      ASSERT_EQ(b.map.find(home, cache).at, b.at(home)) << "step " << i << " home " << home;
      if (k < 2) b.map.cache_word(home, cache);
    }
    if (i % 50 == 0) b.compare(), b.compare_cached();
  }
  b.compare();
  b.compare_cached();
  EXPECT_GT(cache.hits, 100u);
  EXPECT_GT(b.cached, 500u);
}

INSTANTIATE_TEST_SUITE_P(all, home_map_shapes,
                         ::testing::Values(std::pair(true, true), std::pair(true, false),
                                           std::pair(false, true), std::pair(false, false)));

// Nodes of the highest levels keep few ranges beside their links.
TEST(home_map, splits_nodes_of_every_height_in_one_list) {
  constexpr std::uint64_t regions = std::uint64_t{1} << 16;
  bed b(false, true, regions * format::region_words);
  const auto height = [](std::uint64_t region) {  // as in home_map::height_for()
    return 1 +
           std::countr_zero(base::mix(region * format::region_words) | std::uint64_t{1} << 22) / 2;
  };
  base::rng random(7);
  int highest = 0;
  std::uint64_t place = first_word;
  for (std::uint64_t region = 0; region < regions; ++region) {
    if (height(region) < 6) continue;
    highest = std::max(highest, height(region));
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t from = random.below(format::region_words - 3);
      const auto words = static_cast<std::uint32_t>(1 + random.below(3));
      place = first_word + (place - first_word + 4) % (chunk_words * chunks);
      b.put({region * format::region_words + from, words, place});
    }
  }
  EXPECT_GE(highest, 9) << "higher than levels of a region";
  for (const auto& [home, at] : b.model) ASSERT_EQ(b.map.find(home).at, at) << home;
}

TEST(home_map, keeps_account_of_live_and_stale_words) {
  bed b;
  base::rng random(5);
  log_address next = first_word + 8;
  std::array<std::uint64_t, 4> written{};
  for (int i = 0; i < 2000; ++i) {
    const auto p = random_piece(random, next, true);
    b.put(p);
    if (is_data(p.at)) written[p.home / format::region_words] += p.words;
  }
  std::uint64_t nodes = 0;
  b.map.for_each([&](const home_map::mapped_range&) { ++nodes; });
  std::uint64_t live = 0, counted = 0;
  for (std::uint32_t c = 0; c < chunks; ++c) live += b.live_data(c), counted += b.usage.live(c);
  EXPECT_EQ(counted, live + nodes);
  EXPECT_EQ(b.usage.total_live(), counted);
  for (std::uint64_t region = 0; region < 4; ++region) {
    std::uint64_t mapped = 0;
    for (std::uint64_t i = 0; i < format::region_words; ++i)
      mapped += is_data(b.at(region * format::region_words + i)) ? 1 : 0;
    EXPECT_EQ(b.map.stale(region * format::region_words), written[region] - mapped);
  }
}

// L7
TEST(home_map, moves_what_is_still_there_and_nothing_else) {
  bed b;
  b.put({100, 40, 1000});
  b.put({110, 5, 2000});
  ASSERT_TRUE(b.map.reserve(b.writer, 8));
  std::vector<home_map::mapped_range> there;
  home_map::cache cache(64);
  b.map.still_mapped({100, 40, 1000}, there, cache);
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there[0].words, 10u);
  EXPECT_EQ(there[1].home, 115u);
  EXPECT_EQ(there[1].at, 1015u);
  const home_map::mapped_range from[] = {{100, 40, 1000}};
  EXPECT_EQ(b.map.move(b.writer, from, 3000, cache), 35u);
  EXPECT_EQ(b.map.find(100).at, 3000u);
  EXPECT_EQ(b.usage.live(b.usage.chunk_of(3000)), 35u + 2u);
  EXPECT_EQ(b.map.find(112).at, 2002u);
  EXPECT_EQ(b.map.find(139).at, 3039u);
  EXPECT_EQ(b.map.move(b.writer, from, 5000, cache), 0u);
}

TEST(home_map, joins_pieces_that_are_moved_together) {
  bed b;
  home_map::cache cache(64);
  b.put({100, 4, 1000});
  b.put({104, 2, 2000});
  b.put({106, 3, 3000});
  ASSERT_TRUE(b.map.reserve_moves(b.writer, 8));
  EXPECT_EQ(b.map.range_at(105, cache).home, 104u);
  EXPECT_EQ(b.map.range_at(105, cache).words, 2u);
  EXPECT_EQ(b.map.range_at(109, cache).words, 0u);
  const home_map::mapped_range from[] = {{100, 4, 1000}, {104, 2, 2000}, {106, 3, 3000}};
  EXPECT_EQ(b.map.move(b.writer, from, 5000, cache), 9u);
  EXPECT_EQ(b.map.range_at(107, cache).home, 100u);
  EXPECT_EQ(b.map.range_at(107, cache).words, 9u) << "one range";
  EXPECT_EQ(b.usage.total_live(), 10u) << "nine words and a head";
  EXPECT_EQ(b.map.stale(100), 9u);
}

TEST(home_map, moves_the_others_when_one_of_the_pieces_has_changed) {
  bed b;
  home_map::cache cache(64);
  b.put({100, 4, 1000});
  b.put({104, 2, 2000});
  const home_map::mapped_range from[] = {{100, 4, 1000}, {104, 2, 2000}};
  b.put({105, 1, 4000});
  ASSERT_TRUE(b.map.reserve_moves(b.writer, 8));
  EXPECT_EQ(b.map.move(b.writer, from, 5000, cache), 5u);
  EXPECT_EQ(b.map.find(103).at, 5003u);
  EXPECT_EQ(b.map.find(104).at, 5004u);
  EXPECT_EQ(b.map.find(105).at, 4000u);
  EXPECT_EQ(b.usage.total_live(), 6u + 3u) << "six words, three heads";
}

TEST(home_map, drops_tombstones_with_the_last_stale_word_of_their_region) {
  bed b;
  const log_address t = 900 | tombstone_bit;
  b.put({64, 64, 5000});
  b.put({600, 8, 6000});
  b.put({64, 64, t});
  b.put({80, 4, 1200});
  b.put({600, 8, t});
  EXPECT_EQ(b.map.stale(64), 64u);
  b.map.remove_stale(b.writer, 64, 63);
  EXPECT_EQ(b.map.find(64).at, t);
  b.map.remove_stale(b.writer, 64, 1);
  EXPECT_EQ(b.map.find(64).at, 0u);
  EXPECT_EQ(b.map.find(80).at, 1200u);
  EXPECT_EQ(b.map.find(100).at, 0u);
  EXPECT_EQ(b.map.find(600).at, t) << "another region";
  EXPECT_EQ(b.usage.live(b.usage.chunk_of(t)), 1u);
  EXPECT_EQ(b.usage.live(b.usage.chunk_of(1200)), 5u) << "four words and a head";
}

TEST(home_map, says_when_no_node_is_left) {
  chunk_usage usage{first_word, chunk_words, 8};
  base::epochs epochs{1};
  home_map map({.home_words = home_words, .log_words = 64}, usage, epochs);
  home_map::writer w;
  EXPECT_TRUE(map.reserve(w, 10));
  EXPECT_FALSE(map.reserve(w, 100'000));
  EXPECT_TRUE(map.reserve(w, 10));
}

// With one list for all of home, a node of eleven levels has room for one range. Beside a successor
// with three, it gave away more ranges than it had.
TEST(home_map, gives_a_fuller_successor_no_more_than_there_is) {
  const auto levels = [](std::uint64_t low) { return 1 + std::countr_zero(base::mix(low)) / 2; };
  std::uint64_t region = format::region_words;
  while (levels(region) < 11) region += format::region_words;
  std::uint64_t behind = region + 64;
  while (levels(behind) > 2) behind += 8;
  bed b(false, true, region + format::region_words);
  b.put({region, 8, 1000});  // the node of eleven levels
  for (std::uint64_t i = 0; i < 3; ++i) b.put({behind + 16 * i, 8, 2000 + 16 * i});
  b.put({region + 16, 8, 3000});
  for (const auto& [home, at] : b.model) EXPECT_EQ(b.map.find(home).at, at) << home;
}

// A reader finds a mapped word at one of its places, whatever changes around it.
// L5
TEST(home_map, readers_never_miss_a_mapped_word) {
  bed b(true, true, home_words, chunk_words * chunks);  // ranges lie anywhere in one chunk
  for (std::uint64_t home = 0; home < format::region_words; home += 64)
    b.put({home, 64, 1000 + home});
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> missed{0}, wrong{0}, looks{0};
  std::vector<std::jthread> readers;
  for (unsigned r = 0; r < 2; ++r)
    readers.emplace_back([&, r] {
      base::rng random(r);
      home_map::cache cache(256);
      while (!stop.load(std::memory_order_relaxed)) {
        b.epochs.pin(r);
        for (int i = 0; i < 64; ++i) {
          const std::uint64_t home = random.below(format::region_words);
          const log_address p = b.map.find(home, cache).at;
          if (p == 0) ++missed;
          if (p % 1000 != home % 1000) ++wrong;
          if (i % 8 == 0) b.map.cache_word(home, cache);
          if (std::uint64_t value; b.map.cached_word(home, value) && value % 1000 != home % 1000)
            ++wrong;
          ++looks;
        }
        b.epochs.unpin(r);
      }
    });
  base::rng random(9);
  // Places are multiples of 1000 plus the word's number, so a place tells its word.
  for (std::uint64_t i = 1; i < 60'000 || looks.load() <= 1000; ++i) {
    const std::uint64_t from = random.below(format::region_words);
    const auto words = static_cast<std::uint32_t>(
        1 + random.below(std::min<std::uint64_t>(40, format::region_words - from)));
    ASSERT_TRUE(b.map.reserve(b.writer, 1));
    const log_address at = 1000 * (1 + i % 100) + from;
    b.usage.add_live(at, live_words_of(at, words));
    b.map.map(b.writer, {from, words, at});
  }
  stop = true;
  readers.clear();
  EXPECT_EQ(missed.load(), 0u);
  EXPECT_EQ(wrong.load(), 0u);
}

}  // namespace
}  // namespace stele::storage
