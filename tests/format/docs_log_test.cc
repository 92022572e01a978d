// docs/format/log.md describes what the program writes: its tables have the bits of the packing
// functions, and its example is what a ring writes.
#include <base/checksum.h>
#include <format/log_line.h>
#include <format/slot_log.h>
#include <gtest/gtest.h>
#include <media/adr.h>
#include <pool/memory_pool.h>
#include <tests/format/page.h>
#include <tx/log/ring.h>

namespace stele::testing {
namespace {

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

TEST(format_docs_log, the_bits_of_the_head_word) {
  expect_bits(page("log.md").table("| bits of the value | field |"),
              {{"position", format::log_position_mask},
               {"blocks", format::log_blocks_bit},
               {"void", format::log_void_bit}},
              format::guarded_limit - 1);
}

TEST(format_docs_log, the_bits_of_a_line_s_header) {
  using format::line_header;
  using format::record_kind;
  format::log_line line;
  line.words.fill(format::torn_bit);
  format::seal(line, {}, false);
  const auto rows = page("log.md").table("| bits of word 0 | field |");
  expect_bits(rows, {{"top_bits", line.words[0]},
                     {"words", line_header{.words = 7}.pack()},
                     {"first", line_header{.first = true}.pack()},
                     {"last", line_header{.last = true}.pack()},
                     {"checksum", line_header{.checksum = ~std::uint32_t{0}}.pack()},
                     {"kind", line_header{.kind = record_kind{7}}.pack()},
                     {"spilled_kind", line_header{.spilled_kind = record_kind{7}}.pack()},
                     {"columns", line_header{.in_columns = true}.pack()},
                     {"torn", format::torn_bit}});
  for (const auto& row : rows)
    if (row[1] == "kind") {
      const std::map<std::uint64_t, std::string> kinds = {
          {std::uint64_t(record_kind::redo), "redo"},
          {std::uint64_t(record_kind::undo), "undo"},
          {std::uint64_t(record_kind::spilled), "spilled"},
          {std::uint64_t(record_kind::redo_dependent), "redo_dependent"},
          {std::uint64_t(record_kind::redo_with_epoch), "redo_with_epoch"},
          {std::uint64_t(record_kind::undo_with_epoch), "undo_with_epoch"},
          {std::uint64_t(record_kind::undo_with_sum), "undo_with_sum"}};
      EXPECT_EQ(names_in(row[2]), kinds);
      EXPECT_EQ(kinds.rbegin()->first, std::uint64_t(format::last_record_kind));
    }
}

TEST(format_docs_log, the_bits_of_a_run_header) {
  using format::run_header;
  const auto whole = run_header::unpack(all_ones);
  const auto rows = page("log.md").table("| bits | field |");
  expect_bits(rows, {{"offset", run_header{whole.offset, 0, 0}.pack()},
                     {"mask", run_header{0, whole.mask, 0}.pack()},
                     {"count", run_header{0, 0, whole.count}.pack()}});
  EXPECT_EQ(numbers_in(rows.at(2).at(2)).at(1), format::max_run_words);
}

TEST(format_docs_log, the_table_of_a_slot_s_commit_line_is_the_struct) {
  using c = format::slot_commit_record;
  expect_places(page("log.md").table("| offset in the commit line | size | field |"),
                {STELE_PLACE(c, txid), STELE_PLACE(c, offset), STELE_PLACE(c, words),
                 STELE_PLACE(c, checksum), STELE_PLACE(c, reserved)},
                sizeof(c));
}

TEST(format_docs_log, the_example_of_a_record_is_what_a_ring_writes) {
  memory_pool pool({.size = 512 << 10, .log_size = 4096, .log_count = 1, .layout = ""}, 1);
  media::adr::shared shared;
  media::adr medium(shared, 0);
  detail::ring<media::adr> ring(medium, pool.file(), 0);
  ring.reset(0);
  ring.append(format::record_kind::redo, 5, [](auto& out) {
    out.append_word(format::run_header{0x4000, 0xFF, 1}.pack());
    out.append_word(42);
  });
  std::uint64_t written[8];
  std::memcpy(written, ring.bytes(), sizeof written);

  const page p("log.md");
  const auto lines = p.example();
  ASSERT_EQ(lines.size(), 5u);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string label = i < 4 ? "word " + std::to_string(i) : "4 to 7";
    const std::string& line = lines[std::min<std::size_t>(i, 4)];
    ASSERT_TRUE(line.starts_with(label)) << line;
    EXPECT_EQ(words_in(line, label), std::vector{written[i]}) << line;
  }
  base::checksum sum(1 ^ 0);
  const std::uint64_t run = 0x4000 / 8 | std::uint64_t{0xFF} << 44 | std::uint64_t{1} << 52;
  for (const std::uint64_t word : {std::uint64_t{5}, run, std::uint64_t{42}}) sum.add(word);
  EXPECT_EQ(std::stoull(p.between("has the upper half ", ":"), nullptr, 16), sum.value32());
}

}  // namespace
}  // namespace stele::testing
