// docs/format/blocks.md describes what the program writes: its tables have the bits of the packing
// functions, and its examples are what a block log leaves in a ring.
#include <base/checksum.h>
#include <fmt/format.h>
#include <format/log_block.h>
#include <gtest/gtest.h>
#include <media/adr.h>
#include <pool/memory_pool.h>
#include <published/blurred/block_log.h>
#include <tests/format/page.h>

#include <array>

namespace stele::testing {
namespace {

using format::block_kind;
using format::block_record;

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

// B1
TEST(format_docs_blocks, the_bits_of_a_record) {
  const page p("blocks.md");
  const auto data = [](std::uint64_t value, bool sense) {
    return format::pack(block_record{.data = value}, sense).data;
  };
  expect_bits(p.table("| bits of the data block | name |"),
              {{"value", data(all_ones, false)}, {"torn", data(0, true)}});

  const auto metadata = [](const block_record& r, bool sense = false) {
    return format::pack(r, sense).metadata;
  };
  const std::uint64_t abort = metadata({.kind = block_kind::abort});
  auto rows = p.table("| bits of the metadata block | name |");
  for (auto& row : rows)  // four bits that have no name in the paper: by what they mean
    if (row[1] == "(reserved in the paper)") row[1] = row[2];
  expect_bits(rows,
              {{"TornBit", metadata({}, true)},
               {"TailBit", metadata({.data = std::uint64_t{1} << 63})},
               {"MASK", metadata({.mask = 0xFF})},
               {"FLG_DC", abort},
               {"FLG_CA", metadata({.kind = block_kind::commit}) & ~abort},
               {"1: spill record", metadata({.kind = block_kind::spill})},
               {"1: spill checksum record", metadata({.kind = block_kind::spill_checksum})},
               {"1: checksum delta record", metadata({.kind = block_kind::checksum_delta})},
               {"1: run; of a commit record: by columns", metadata({.kind = block_kind::run})},
               {"ADDR", metadata({.address = format::address_mask})}});
}

TEST(format_docs_blocks, the_flags_of_each_record) {
  const std::map<std::string, std::uint64_t> kinds = {
      {"data", format::flags_of(block_kind::data)},
      {"filler", format::flags_of(block_kind::data)},
      {"commit", format::flags_of(block_kind::commit)},
      {"abort", format::flags_of(block_kind::abort)},
      {"spill", format::flags_of(block_kind::spill)},
      {"checksum delta", format::flags_of(block_kind::checksum_delta)},
      {"spill checksum", format::flags_of(block_kind::spill_checksum)},
      {"commit by columns", format::flags_of(block_kind::commit_by_columns)},
      {"run", format::flags_of(block_kind::run)}};
  const auto rows = page("blocks.md").table("| record | bits 10-15 |");
  for (const auto& row : rows) {
    std::uint64_t flags = 0;
    if (row[0] == "filler") {
      EXPECT_EQ(row[1], fmt::format("none; MASK is {}", block_record{}.mask));
    } else if (row[1] != "none") {
      for (const std::uint64_t bit : numbers_in(row[1])) flags |= std::uint64_t{1} << bit;
    }
    ASSERT_TRUE(kinds.contains(row[0])) << row[0];
    EXPECT_EQ(flags, kinds.at(row[0])) << row[0];
  }
  EXPECT_EQ(rows.size(), kinds.size());
}

using line_words = std::array<std::uint64_t, 8>;

// The line that a block log of the examples' pool has after a transaction with TxID 5 that stores
// these words from 0x4000 on.
line_words line_of_words(std::initializer_list<std::uint64_t> words, bool runs) {
  memory_pool pool({.size = 512 << 10, .log_size = 4096, .log_count = 1, .layout = ""}, 1);
  media::adr::shared shared;
  media::adr medium(shared, 0);
  detail::ring<media::adr> ring(medium, pool.file(), 0);
  ring.reset(0);
  detail::block_log<media::adr> log(medium, ring, pool.file().header().id);
  log.configure(runs, detail::default_abort_interval);
  log.begin();
  std::uint64_t address = 0x4000 - 8;
  for (const std::uint64_t word : words)
    (void)log.append_word({block_kind::data, 0xFF, word, address += 8});
  log.commit(5);
  line_words written;
  std::memcpy(written.data(), ring.bytes(), sizeof written);
  return written;
}

TEST(format_docs_blocks, the_example_of_a_run_is_what_a_block_log_writes) {
  const line_words written = line_of_words({42, 0x8000000000000001u, 7}, true);
  const page p = page("blocks.md").section("## Example of a run");
  const auto lines = p.example();
  ASSERT_EQ(lines.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string& line = lines[i + 1];
    EXPECT_EQ(std::stoul(line, nullptr, 16), 16 * i);
    EXPECT_EQ(words_in(line, "0000"), (std::vector{written[2 * i], written[2 * i + 1]})) << line;
  }
}

TEST(format_docs_blocks, the_example_is_what_a_block_log_writes) {
  const line_words written = line_of_words({42, 0x8000000000000001u}, false);
  const page p = page("blocks.md").section("## Example");
  const auto lines = p.example();
  ASSERT_EQ(lines.size(), 5u);  // one of titles
  base::checksum sum(1 ^ 0);
  std::string summed;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string& line = lines[i + 1];
    EXPECT_EQ(std::stoul(line, nullptr, 16), 16 * i);
    EXPECT_EQ(words_in(line, "0000"), (std::vector{written[2 * i], written[2 * i + 1]})) << line;
    if (i >= 2) continue;
    for (const std::uint64_t word : {written[2 * i], written[2 * i + 1]}) {
      sum.add(word);
      summed += (summed.empty() ? "" : ", ") + fmt::format("{:016x}", word);
    }
  }
  EXPECT_EQ(p.between("over the words ", ". The result"), summed);
  EXPECT_EQ(p.between("The result is ", ";"), fmt::format("{:016x}", sum.value()));
  EXPECT_EQ(p.between("FLG_CA, checksum ", " "), fmt::format("{:#x}", sum.value() >> 16));
}

}  // namespace
}  // namespace stele::testing
