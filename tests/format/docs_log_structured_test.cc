// docs/format/log-structured.md describes what the program writes: its tables have the places and
// bits of the structs, and its example is what a lane's log writes to a chunk.
#include <format/log_chunk.h>
#include <gtest/gtest.h>
#include <media/adr.h>
#include <pool/memory_pool.h>
#include <published/log_structured/chunk_log.h>
#include <tests/format/page.h>

namespace stele::testing {
namespace {

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

// L3
TEST(format_docs_log_structured, the_table_of_a_chunk_is_the_struct) {
  using h = format::chunk_header;
  using format::log_type;
  const auto rows = page("log-structured.md").table("| offset | size | field |");
  expect_places(rows,
                {STELE_PLACE(h, generation), STELE_PLACE(h, owner), STELE_PLACE(h, checksum),
                 STELE_PLACE(h, previous), STELE_PLACE(h, next), STELE_PLACE(h, end),
                 STELE_PLACE(h, first), STELE_PLACE(h, reserved)},
                sizeof(h));
  const std::map<std::uint64_t, std::string> types = {
      {std::uint64_t(log_type::update), "update"},
      {std::uint64_t(log_type::allocation), "allocation"},
      {std::uint64_t(log_type::deallocation), "deallocation"},
      {std::uint64_t(log_type::moved), "moved"},
      {std::uint64_t(log_type::mapping), "mapping"}};
  EXPECT_EQ(names_in(rows.at(1).at(3)), types);
  EXPECT_EQ(h::pack_owner(log_type{0xFF}, 0), 0xFFu) << "the type is the low byte";
}

// L1, L2
TEST(format_docs_log_structured, the_bits_of_a_block_and_of_an_entry) {
  using b = format::block_preamble;
  const page p("log-structured.md");
  // By word of the preamble.
  std::map<std::uint64_t, table_rows> told;
  for (const auto& row : p.table("| word | bits | field |"))
    if (row[0] != "3..") told[number_in(row[0])].push_back({row[1], row[2]});
  ASSERT_EQ(told.size(), format::preamble_words);
  const auto bits_that = [](auto&& reads) {  // the bits of a word that a reading function sees
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < 64; ++i)
      if (reads(std::uint64_t{1} << i) != 0) bits |= std::uint64_t{1} << i;
    return bits;
  };
  expect_bits(told[offsetof(b, version) / 8], {{"version", all_ones}});
  expect_bits(told[offsetof(b, ring) / 8],
              {{"peer", bits_that([](std::uint64_t w) { return b{0, w, 0}.peer(); })},
               {"entries", bits_that([](std::uint64_t w) { return b{0, w, 0}.entries(); })}});
  expect_bits(told[offsetof(b, check) / 8],
              {{"crc", bits_that([](std::uint64_t w) { return b{0, 0, w}.crc(); })},
               {"words", bits_that([](std::uint64_t w) { return b{0, 0, w}.words(); })}});

  using format::entry_header;
  const entry_header most = entry_header::unpack(all_ones);
  expect_bits(p.table("| bits | field |"), {{"offset", entry_header{most.offset, false, 0}.pack()},
                                            {"tombstone", entry_header{0, true, 0}.pack()},
                                            {"words", entry_header{0, false, most.words}.pack()}});
}

TEST(format_docs_log_structured, the_example_is_what_a_log_writes) {
  constexpr std::uint64_t chunk = 0x2C00, stored = 7;
  memory_pool pool({.size = 64 << 10,
                    .log_size = 1024,
                    .log_count = 1,
                    .layout = "",
                    .home = format::home_kind::log},
                   1);
  storage::log_space space(pool.file(), {}, 1);
  while (space.offset_of(*space.allocate_chunk(0)) + pool.file().header().log_size < chunk) {
  }
  media::adr::shared shared;
  media::adr medium(shared, 0);
  const format::log_type type = format::log_type::update;
  detail::chunk_log<media::adr> log(space, 0, {&type, 1});
  log.staged.push_back({.home = space.home_of(0x120B0), .words = 1, .from = log.words_appended()});
  log.append_words(&stored, 1);
  ASSERT_TRUE(log.reserve(0));
  log.write(medium, 5);

  const page p = page("log-structured.md").section("## Example");
  std::uint64_t next = chunk;
  for (const auto& row : p.table("| offset | word |")) {  // "0x1c18 to 0x1c28" is a range
    const auto to = row[0].find(" to ");
    const std::uint64_t first = number_in(row[0].substr(0, to)),
                        last = to == row[0].npos ? first : number_in(row[0].substr(to + 4));
    EXPECT_EQ(first, next);
    EXPECT_EQ(last % 8, 0u) << row[0];
    for (; next <= last; next += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, pool.file().base() + next, 8);
      EXPECT_EQ(std::stoull(row[1], nullptr, 16), word) << row[0] << ": " << std::hex << word;
    }
  }
  EXPECT_EQ(next, chunk + 128);
}

}  // namespace
}  // namespace stele::testing
