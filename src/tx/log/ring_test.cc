// Compares encoded records with a byte array: the runs hold what was stored last, for any order and
// overlap of the stores. Records that are sealed in registers with those that are buffered. And
// records of any length are read back, unless a bit has changed.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <media/adr.h>
#include <pool/memory_pool.h>
#include <tx/log/ring.h>

#include <algorithm>
#include <cstring>
#include <functional>
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

// Two logs of one pool, so that checksums agree where positions do.
class short_records : public ::testing::Test {
 protected:
  using log = ring<media::adr>;
  static constexpr auto new_word = [](std::uint64_t, std::uint64_t value) { return value; };
  static constexpr auto kind = format::record_kind::redo;

  short_records() { buffered_.reset(0), sealed_.reset(0); }

  static void append_buffered(log& to, std::uint64_t txid, const write_set& set) {
    to.append(kind, txid, [&](auto& out) { encode_runs(set.lines(), out, new_word); });
  }
  // Whether append_few() takes the record; then it is the same as a buffered one.
  bool takes(std::uint64_t txid, const write_set& set) {
    const bool taken = sealed_.append_few(kind, txid, set.lines(), new_word);
    if (!taken) append_buffered(sealed_, txid, set);
    append_buffered(buffered_, txid, set);
    EXPECT_EQ(sealed_.appended_end(), buffered_.appended_end());
    for (log* l : {&sealed_, &buffered_}) {
      l->publish();
      l->truncate(l->tail());
    }
    return taken;
  }
  bool logs_are_equal() const {
    return std::memcmp(buffered_.bytes(), sealed_.bytes(),
                       buffered_.capacity_lines() * line_size) == 0;
  }

  testing::memory_pool pool_{{.size = 1 << 20, .log_size = 8192, .log_count = 2, .layout = ""}};
  media::adr::shared shared_;
  media::adr media_{shared_, 0};
  log buffered_{media_, pool_.file(), 0}, sealed_{media_, pool_.file(), 1};
};

TEST_F(short_records, are_those_that_the_buffer_writes) {
  base::rng random(7);
  for (std::uint64_t txid = 1; txid <= 1000; ++txid) {  // seven laps
    write_set set;
    const unsigned lines = 1 + static_cast<unsigned>(random.below(3));
    for (unsigned i = 0; i < lines; ++i)
      set.add_word((10 * i + random.below(10)) * line_size, random.below(8), random());
    bool runs_on = false;
    for (unsigned i = 1; i < lines; ++i)
      runs_on = runs_on || (set.lines()[i - 1].mask >> 56 != 0 && set.lines()[i].mask == 0xFF &&
                            set.lines()[i].offset == set.lines()[i - 1].offset + line_size);
    ASSERT_EQ(takes(txid, set), !runs_on);
    ASSERT_TRUE(logs_are_equal()) << txid;
  }
}

TEST_F(short_records, are_not_taken_when_they_have_more_than_three_words_or_parts_of_words) {
  write_set many, part, two, joined;
  for (std::uint64_t i = 0; i < 4; ++i) many.add_word(2 * i * line_size, 0, i);
  part.add(0).mask = 0x0F;
  two.add(0).mask = 0xFFFF;
  joined.add_word(0, 7, 1), joined.add_word(line_size, 0, 2);
  for (const write_set* set : {&many, &part, &two, &joined})
    EXPECT_FALSE(sealed_.append_few(kind, 1, set->lines(), new_word));
  EXPECT_EQ(std::count(sealed_.bytes(), sealed_.bytes() + line_size, std::byte{0}), line_size)
      << "nothing is written then";
}

// A record of so many payload words with the TxID.
class long_records : public ::testing::Test {
 protected:
  void append(std::uint64_t txid, std::uint64_t words) {
    base::rng random(txid);
    first_ = log_.tail();
    log_.append(format::record_kind::redo, txid, [&](auto& out) {
      for (std::uint64_t i = 1; i < words; ++i) out.append_word(random());
    });
    log_.publish();
  }
  // Whether it is read back as it was written.
  result<bool> is_back(std::uint64_t txid, std::uint64_t words) const {
    log_record record;
    std::uint64_t position = first_;
    if (auto whole = log_.read(position, record); !whole || !*whole) return whole;
    base::rng random(txid);
    std::vector<std::uint64_t> payload(words - 1);
    std::ranges::generate(payload, std::ref(random));
    return record.txid == txid && record.payload == payload && position == log_.tail();
  }
  std::uint64_t lines_in_columns() const {
    std::uint64_t lines = 0;
    for (std::uint64_t at = first_; at < log_.tail(); ++at) {
      std::uint64_t head = 0;
      std::memcpy(&head, line(at), 8);
      lines += format::line_header::unpack(head).in_columns;
    }
    return lines;
  }
  std::byte* line(std::uint64_t position) const {
    return log_.bytes() + position % log_.capacity_lines() * line_size;
  }

  testing::memory_pool pool_{{.size = 1 << 20, .log_size = 8192, .log_count = 1, .layout = ""}};
  media::adr::shared shared_;
  media::adr media_{shared_, 0};
  ring<media::adr> log_{media_, pool_.file(), 0};
  std::uint64_t first_ = 0;
};

TEST_F(long_records, of_any_length_are_read_back) {
  log_.reset(0);
  for (std::uint64_t words = 2; words <= 500; ++words) {
    append(words, words);
    const auto back = is_back(words, words);
    ASSERT_TRUE(back && *back) << words;
    const std::uint64_t full_lines = (words - 1) / format::payload_words;
    ASSERT_GE(lines_in_columns(), words >= 150 ? full_lines - 6 : 0);
    ASSERT_LE(lines_in_columns(), words <= 42 ? 0 : full_lines);
    log_.truncate(log_.tail());
  }
}

TEST_F(long_records, with_a_changed_bit_or_swapped_words_are_refused) {
  log_.reset(0);
  for (const std::uint64_t words : {49u, 133u, 259u}) {  // so the last line is full
    append(words, words);
    ASSERT_GT(lines_in_columns(), 0u);
    for (std::uint64_t at = first_; at < log_.tail(); ++at)
      for (unsigned bit = 0; bit < 8 * line_size; ++bit) {
        if (bit >= 44 && bit < 50) continue;  // a kind: mechanisms refuse those that are not theirs
        const std::byte changed{static_cast<unsigned char>(1u << bit % 8)};
        line(at)[bit / 8] ^= changed;
        const auto back = is_back(words, words);
        ASSERT_FALSE(back && *back) << "line " << at << " bit " << bit;
        line(at)[bit / 8] ^= changed;
      }
    // Payload words of two columns, and of two lines of one column.
    for (const std::size_t other : {std::size_t{2 * 8}, line_size + 8}) {
      std::byte* const word = line(first_ + 1) + 8;
      std::swap_ranges(word, word + 8, line(first_ + 1) + other);
      const auto back = is_back(words, words);
      EXPECT_FALSE(back && *back) << words;
      std::swap_ranges(word, word + 8, line(first_ + 1) + other);
    }
    const auto back = is_back(words, words);
    EXPECT_TRUE(back && *back);
    log_.truncate(log_.tail());
  }
}

}  // namespace
}  // namespace stele::detail
