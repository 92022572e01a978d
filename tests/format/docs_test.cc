// docs/format/pool.md describes what the program writes: its tables match the structs and the
// offsets of the control words. docs_pool_example_test.cc has its example.
#include <fmt/format.h>
#include <format/block_checksums.h>
#include <format/pool_layout.h>
#include <gtest/gtest.h>
#include <tests/conformance/pools.h>
#include <tests/format/page.h>
#include <tx/engine.h>

namespace stele::testing {
namespace {

TEST(format_docs, the_table_of_the_pool_header_is_the_struct) {
  using h = format::pool_header;
  expect_places(page("pool.md").section("## Header").table("| offset | size | field |"),
                {STELE_PLACE(h, magic),
                 STELE_PLACE(h, version),
                 STELE_PLACE(h, header_size),
                 STELE_PLACE(h, id),
                 STELE_PLACE(h, size),
                 STELE_PLACE(h, log_offset),
                 STELE_PLACE(h, log_size),
                 STELE_PLACE(h, log_count),
                 STELE_PLACE(h, chunk_shift),
                 STELE_PLACE(h, home_offset),
                 STELE_PLACE(h, table_offset),
                 STELE_PLACE(h, chunks_offset),
                 STELE_PLACE(h, chunk_count),
                 STELE_PLACE(h, layout),
                 STELE_PLACE(h, home),
                 STELE_PLACE(h, home_size),
                 STELE_PLACE(h, parity_offset),
                 STELE_PLACE(h, parity_block_size),
                 STELE_PLACE(h, home_copy_offset),
                 STELE_PLACE(h, checkpoint_commits),
                 STELE_PLACE(h, block_checksums_offset),
                 STELE_PLACE(h, reserved),
                 STELE_PLACE(h, checksum)},
                sizeof(h));
}

TEST(format_docs, the_table_of_the_home_header_is_the_struct) {
  using h = format::home_header;
  expect_places(
      page("pool.md").table("| offset in home | size | field |"),
      {STELE_PLACE(h, root_offset), STELE_PLACE(h, root_size), STELE_PLACE(h, layout_version),
       STELE_PLACE(h, magic), STELE_PLACE(h, root_form), STELE_PLACE(h, reserved)},
      sizeof(h));
}

TEST(format_docs, the_control_words_are_where_the_page_has_them) {
  using namespace format;
  const std::vector<std::uint64_t> offsets = {
      session_offset,     watermark_offset,      parity_epoch_offset,   checkpoint_offset,
      fallback_to_offset, fallback_from_offset,  fallback_state_offset, saved_map_offset,
      growth_offset,      growth_slot_offset(1), growth_slot_offset(2), block_checksum_state_offset,
      magic_state_offset};
  std::vector<std::uint64_t> told;
  for (const auto& row : page("pool.md").table("| offset | value | written |"))
    for (const std::uint64_t offset : numbers_in(row[0])) told.push_back(offset);
  EXPECT_EQ(told, offsets);
}

TEST(format_docs, the_control_words_have_the_values_of_the_page) {
  using namespace format;
  std::map<std::uint64_t, std::string> cells;
  for (const auto& row : page("pool.md").table("| offset | value | written |"))
    cells[numbers_in(row[0]).front()] = row[1];
  const auto session_bits = [](const session& s) { return s.pack() ^ session {}.pack(); };
  EXPECT_EQ((std::vector{session_bits({.open = true}), session_bits({.log_kind = 0xFF})}),
            (std::vector{bits_in("16"), bits_in("24-31")}));
  EXPECT_TRUE(cells[session_offset].starts_with(
      fmt::format("session: 0x{:X}, bit 16 open, bits 24 to 31 log kind (", session{}.pack())));
  std::vector<std::uint64_t> kinds;
  for (const std::uint64_t n : numbers_in(cells[session_offset]))
    if (n < 16) kinds.push_back(n);
  using detail::log_kind;
  EXPECT_EQ(kinds,
            (std::vector<std::uint64_t>{
                std::uint64_t(log_kind::none), std::uint64_t(log_kind::torn_bit),
                std::uint64_t(log_kind::lines_or_blocks), std::uint64_t(log_kind::chunks),
                std::uint64_t(log_kind::ordered_writes), std::uint64_t(log_kind::archapt_redo),
                std::uint64_t(log_kind::archapt_undo)}));
  EXPECT_EQ(numbers_in(cells[fallback_to_offset]), std::vector{checkpoint_offset});
  const std::map<std::uint64_t, std::string> fallback = {
      {std::uint64_t(fallback_state::none), "no fallback"},
      {std::uint64_t(fallback_state::under_way), "under way"},
      {std::uint64_t(fallback_state::done), "done"}};
  EXPECT_EQ(names_in(cells[fallback_state_offset]), fallback);
  const std::map<std::uint64_t, std::string> checksums = {
      {std::uint64_t(block_checksum_state::legacy), "*legacy*"},
      {std::uint64_t(block_checksum_state::none), "*none*"},
      {std::uint64_t(block_checksum_state::valid), "*valid*"},
      {std::uint64_t(block_checksum_state::updating), "*updating*"}};
  EXPECT_EQ(names_in(cells[block_checksum_state_offset]), checksums);
}

// The list at the page's top, as far as its places are numbers.
TEST(format_docs, the_parts_of_a_pool_are_where_the_page_has_them) {
  using namespace format;
  const std::map<std::uint64_t, std::string> parts = {
      {0, "header"},
      {header_copy_offset, "the header again"},
      {session_offset, "session word"},
      {watermark_offset, "watermark"},
      {owner_offset, "pid of the opener"},
      {reader_socket_offset, "number of the readers' socket"},
      {generation_offset, "generation"},
      {saved_map_offset, "first chunk of the saved home map"},
      {parity_epoch_offset, "parity epoch"},
      {checkpoint_offset, "checkpoint"},
      {fallback_to_offset, "fallback"},
      {growth_offset, "growth: slot in force"},
      {growth_slot_offset(1), "growth slot 1"},
      {growth_slot_offset(2), "growth slot 2"},
      {block_checksum_state_offset, "state of the block checksums"},
      {magic_state_offset, "whether home has magic words"},
      {front_size, "logs"}};
  std::map<std::uint64_t, std::string> told;
  for (const std::string& line : page("pool.md").front().example()) {
    std::istringstream in(line);
    std::uint64_t offset = 0;
    std::string name;
    if (in >> offset && std::getline(in >> std::ws, name) && line[0] != '+')
      told.emplace(offset, name.substr(0, name.find("  ")));
  }
  for (const auto& [offset, name] : parts) EXPECT_EQ(told[offset], name) << offset;
  EXPECT_NE(page("pool.md").text().find(fmt::format(" +{}  ", sizeof(home_header))),
            std::string::npos);
  EXPECT_EQ(told.size(), parts.size());
}

}  // namespace
}  // namespace stele::testing
