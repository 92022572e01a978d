// A block of a log-structured pool is damaged, and the pool is opened without being verified. The
// cleaner found no entry behind that block, and freed the chunk with what the map still had there.
#include <base/rng.h>
#include <format/log_chunk.h>
#include <stele/log_structured_options.h>
#include <tests/conformance/pools.h>

#include <fstream>

namespace stele::testing {
namespace {

constexpr std::size_t count = 512;
struct numbers {
  field<std::uint64_t> at[count];
};

class damaged_chunk : public ::testing::Test {
 protected:
  pool_options options() const {
    return {.create_size = 1 << 20,
            .engine = {
                .mechanism = "log_structured",
                .media = "process",
                .log_size = 4096,
                .log_count = 2,
                .verify = verification::never,
                .tuning = {log_structured_options{
                    .join_when_cleaning = false, .clean_from = 0.02, .victim_live_share = 0.99}}}};
  }
  static result<> put(pool<numbers>& p, std::size_t i, std::uint64_t n) {
    return p.update([&](numbers& all) { all.at[i] = n; });
  }
  static std::vector<std::uint64_t> content(const pool<numbers>& p) {
    std::vector<std::uint64_t> all(count);
    EXPECT_TRUE(succeeds(p.read([&](const numbers& n) {
      for (std::size_t i = 0; i < count; ++i) all[i] = n.at[i];
    })));
    return all;
  }
  // Changes the last word of the first block of each chunk with data. The map that the close has
  // saved stays whole.
  void damage_first_blocks() const {
    const auto h = storage::pool_file::peek(path_);
    ASSERT_TRUE(succeeds(h));
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint32_t c = 0; c < h->log_chunks(); ++c) {
      const std::uint64_t at = h->log_offset + c * h->log_size;
      std::array<std::uint64_t, format::chunk_header_words + format::preamble_words> words{};
      file.seekg(static_cast<std::streamoff>(at));
      file.read(reinterpret_cast<char*>(words.data()), sizeof words);
      const auto& preamble =
          *reinterpret_cast<const format::block_preamble*>(&words[format::chunk_header_words]);
      if (words[2] == 0 || words[1] == static_cast<std::uint64_t>(format::log_type::mapping) ||
          preamble.words() < format::preamble_words + 2)
        continue;
      file.seekp(static_cast<std::streamoff>(
          at + 8 * (format::chunk_header_words + preamble.words() - 1)));
      file.write("damaged!", 8);
    }
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
};

TEST_F(damaged_chunk, is_not_freed_while_the_map_points_into_it) {
  {
    auto p = open_pool<numbers>(path_, options());
    for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(succeeds(put(p, i, 1000 + i)));
    ASSERT_TRUE(succeeds(p.close()));
  }
  damage_first_blocks();
  auto p = open_pool<numbers>(path_, options());
  const auto before = content(p);
  std::size_t whole = 0;
  for (std::size_t i = 0; i < count; ++i) whole += before[i] == 1000 + i ? 1 : 0;
  ASSERT_GT(whole, count / 2);
  ASSERT_LT(whole, count) << "no block was damaged";
  base::rng random(1);
  // Every second word: all chunks become sparse.
  for (unsigned i = 0; i < 40'000; ++i)
    ASSERT_TRUE(succeeds(put(p, 2 * random.below(count / 2), random())));
  EXPECT_NE(p.counters().of_mechanism["cleaned_chunks"], 0u);
  const auto after = content(p);
  for (std::size_t i = 1; i < count; i += 2) EXPECT_EQ(after[i], before[i]) << "word " << i;
}

}  // namespace
}  // namespace stele::testing
