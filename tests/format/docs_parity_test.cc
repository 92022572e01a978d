// docs/format/parity.md describes what the program writes: places and sums of parity blocks.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <pool/memory_pool.h>
#include <published/archapt/parity_area.h>
#include <tests/format/page.h>

namespace stele::testing {
namespace {

TEST(format_docs_parity, the_table_of_a_block_is_the_struct) {
  using b = format::parity_block;
  const page p("parity.md");
  const auto rows = p.table("| offset | size | field |");
  expect_places(rows,
                {STELE_PLACE(b, checksum), STELE_PLACE(b, epoch), STELE_PLACE(b, kind),
                 STELE_PLACE(b, skipped), STELE_PLACE(b, lines), STELE_PLACE(b, reserved),
                 STELE_PLACE(b, columns), STELE_PLACE(b, rows), STELE_PLACE(b, odd_columns),
                 STELE_PLACE(b, odd_rows)},
                sizeof(b));
  using format::parity_kind;
  const std::map<std::uint64_t, std::string> kinds = {
      {std::uint64_t(parity_kind::none), "never written"},
      {std::uint64_t(parity_kind::active), "active"},
      {std::uint64_t(parity_kind::ended), "ended"}};
  EXPECT_EQ(names_in(rows.at(2).at(3)), kinds);
  EXPECT_EQ(numbers_in(p.between("`parity_block_size` is ", ".")),
            (std::vector<std::uint64_t>{format::plain_block_size, format::halves_block_size}));
}

TEST(format_docs_parity, blocks_lie_where_the_page_has_them) {
  const page p("parity.md");
  EXPECT_EQ(p.example().at(0), "parity_offset + (2 m + k) x parity_block_size,  k = 0, 1");
  EXPECT_EQ(p.between("There are ", " matrices"), "`ceil((size - home_offset) / 3136)`");
  for (const std::uint32_t size : {format::plain_block_size, format::halves_block_size}) {
    const memory_pool pool({.size = 1 << 20, .layout = "", .parity_block_size = size}, 1);
    const format::pool_header& h = pool.file().header();
    const detail::parity_area area(pool.file());
    EXPECT_EQ(area.matrices(), (h.size - h.home_offset + 3135) / 3136);
    for (const std::uint64_t m : {std::uint64_t{0}, area.matrices() - 1})
      for (unsigned k = 0; k < 2; ++k)
        EXPECT_EQ(area.block_offset(m, k), h.parity_offset + (2 * m + k) * size);
  }
}

// Recomputes a block from the page's words.
TEST(format_docs_parity, the_sums_of_a_block_are_the_page_s) {
  detail::matrix m;
  base::rng random(1);
  for (auto& line : m.lines)
    for (auto& word : line) word = random();
  format::parity_block block{};
  detail::compute_checksums(m, true, block);
  for (unsigned n = 0; n < 7; ++n)
    for (unsigned w = 0; w < 8; ++w) {
      std::uint64_t column = 0, row = 0, odd_column = 0, odd_row = 0;
      for (unsigned i = 0; i < 49; ++i) {
        const std::uint64_t word = m.lines[i][w];
        if (i / 7 == n) column += word, odd_column += i % 7 % 2 == 1 ? word : 0;
        if (i % 7 == n) row += word, odd_row += i / 7 % 2 == 1 ? word : 0;
      }
      EXPECT_EQ(block.columns[n][w], column);
      EXPECT_EQ(block.rows[n][w], row);
      EXPECT_EQ(block.odd_columns[n][w], odd_column);
      EXPECT_EQ(block.odd_rows[n][w], odd_row);
    }
  const std::string value = page("parity.md").between("words), initial value ", ",");
  for (unsigned i = 0; i < 49; ++i)
    EXPECT_EQ(block.lines[i],
              media::crc32c(static_cast<std::uint32_t>(number_in(value)), m.lines[i].data(), 8));
}

}  // namespace
}  // namespace stele::testing
