// Compares the write set with a byte array: the runs hold what was stored last, for any order and
// overlap of the stores.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/log/record.h>
#include <tx/write_set.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace stele::detail {
namespace {

void store(write_set& set, std::uint64_t offset, const std::uint8_t* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t at = offset + i, line = at / line_size * line_size;
    written_line* found = set.find(line);
    if (found == nullptr) found = &set.add(line);
    reinterpret_cast<std::uint8_t*>(found->words.data())[at - line] = bytes[i];
    found->mask |= std::uint64_t{1} << (at - line);
  }
}

struct run {
  std::uint64_t offset;
  std::uint8_t mask;
  std::vector<std::uint64_t> words;
};
std::vector<run> runs_of(const write_set& set, std::uint32_t longest = format::max_run_words) {
  std::vector<run> runs;
  for_each_run(
      set.lines(), longest,
      [&](std::uint64_t offset, std::uint8_t mask, std::uint32_t) {
        runs.push_back({offset, mask, {}});
      },
      [&](std::uint64_t word) { runs.back().words.push_back(word); });
  return runs;
}

TEST(write_set, finds_what_was_added_and_nothing_else) {
  write_set set;
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(set.empty());
    std::set<std::uint64_t> lines;
    base::rng random(static_cast<std::uint64_t>(round));
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t line = random.below(2000) * line_size;
      written_line* const found = set.find(line);
      ASSERT_EQ(found != nullptr, lines.contains(line));
      if (found != nullptr) {
        ASSERT_EQ(found->offset, line);
        continue;
      }
      ASSERT_EQ(set.add(line).mask, 0u) << "a fresh line has something stored";
      lines.insert(line);
    }
    EXPECT_EQ(set.lines().size(), lines.size());
    set.clear();
    for (const std::uint64_t line : lines) ASSERT_EQ(set.find(line), nullptr);
  }
}

TEST(write_set, a_run_spans_neighbouring_lines_and_stops_at_its_longest) {
  write_set set;
  const std::vector<std::uint8_t> bytes(4096, 7);
  store(set, 640, bytes.data(), 640);
  auto runs = runs_of(set);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, 640u);
  EXPECT_EQ(runs[0].words.size(), 80u);
  runs = runs_of(set, 30);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].words.size(), 30u);
  EXPECT_EQ(runs[2].offset, 640u + 480);
  EXPECT_EQ(runs[2].words.size(), 20u);
}

TEST(write_set, a_word_stored_in_part_is_a_run_of_its_own) {
  write_set set;
  const std::vector<std::uint8_t> bytes(64, 7);
  store(set, 0, bytes.data(), 16);
  store(set, 19, bytes.data(), 3);
  store(set, 24, bytes.data(), 40);
  const auto runs = runs_of(set);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].offset, 16u);
  EXPECT_EQ(runs[1].mask, 0b00111000);
  EXPECT_EQ(runs[1].words[0] >> 24 & 0xFF'FFFF, 0x07'0707u);
  EXPECT_EQ(runs[2].words.size(), 5u);
}

TEST(write_set, runs_replayed_give_the_bytes_that_were_stored) {
  constexpr std::size_t size = 1 << 14;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::rng random(seed);
    write_set set;
    std::vector<std::uint8_t> model(size, 0), replayed(size, 0);
    const std::uint64_t stores = 1 + random.below(60),
                        widest = 1 + random.below(seed % 3 == 0 ? 2000 : 20);
    for (std::uint64_t s = 0; s < stores; ++s) {
      const std::size_t n = 1 + random.below(widest), at = random.below(size - n);
      std::vector<std::uint8_t> bytes(n);
      for (auto& b : bytes) b = static_cast<std::uint8_t>(1 + random.below(255));
      store(set, at, bytes.data(), n);
      std::memcpy(&model[at], bytes.data(), n);
    }
    std::uint64_t words = 0;
    for (const run& r : runs_of(set)) {
      ASSERT_TRUE(r.mask == 0xFF || r.words.size() == 1);
      ASSERT_FALSE(r.words.empty());
      words += 1 + r.words.size();
      for (std::size_t i = 0; i < r.words.size(); ++i)
        for (unsigned b = 0; b < 8; ++b)
          if ((r.mask >> b & 1) != 0) {
            ASSERT_EQ(replayed[r.offset + 8 * i + b], 0) << "a byte is in two runs";
            replayed[r.offset + 8 * i + b] = static_cast<std::uint8_t>(r.words[i] >> 8 * b);
          }
    }
    ASSERT_EQ(replayed, model);
    ASSERT_EQ(words, payload_words(set.lines()));
    ASSERT_LE(words, 16 * set.lines().size()) << "more than the bound that logs reckon with";
  }
}

}  // namespace
}  // namespace stele::detail
