// Compares encoded records with a byte array: the runs hold what was stored last, for any order and
// overlap of the stores.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/log/ring.h>

#include <cstring>
#include <vector>

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
std::vector<std::uint64_t> encoded(const write_set& set) {
  std::vector<std::uint64_t> words;
  word_buffer out([&](std::span<const std::uint64_t> some) {
    words.insert(words.end(), some.begin(), some.end());
  });
  encode_runs(set.lines(), out, [](std::uint64_t, std::uint64_t value) { return value; });
  out.finish();
  return words;
}
std::vector<run> runs_of(const write_set& set) {
  std::vector<run> runs;
  const auto words = encoded(set);
  for (std::size_t at = 0; at < words.size();) {
    const auto head = format::run_header::unpack(words[at]);
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(at + 1);
    runs.push_back({head.offset, head.mask, {first, first + head.count}});
    at += 1 + head.count;
  }
  return runs;
}

TEST(record_encoder, a_run_spans_neighbouring_lines_and_is_as_long_as_the_format_allows) {
  write_set set;
  const std::vector<std::uint8_t> bytes(300 * line_size, 7);
  store(set, 640, bytes.data(), 10 * line_size);
  auto runs = runs_of(set);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, 640u);
  EXPECT_EQ(runs[0].words.size(), 80u);
  set.clear();
  store(set, 640, bytes.data(), bytes.size());
  runs = runs_of(set);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].words.size(), format::max_run_words / 8 * 8);
  EXPECT_EQ(runs[1].offset, 640u + 8 * runs[0].words.size());
  EXPECT_EQ(runs[0].words.size() + runs[1].words.size(), 2400u);
}

TEST(record_encoder, a_word_stored_in_part_is_a_run_of_its_own) {
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

TEST(record_encoder, runs_replayed_give_the_bytes_that_were_stored) {
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
    ASSERT_EQ(words, encoded(set).size());
    ASSERT_LE(words, 16 * set.lines().size()) << "more than the bound that logs reckon with";
  }
}

}  // namespace
}  // namespace stele::detail
