// docs/format/tape.md describes what the program writes: its tables are the structs, its numbers of
// operations and tags are the program's, and its example is what a tape writer writes. And
// docs/format/native.md: the costs of native tapes are those of the program.
#include <gtest/gtest.h>
#include <lab_media/tape.h>
#include <tests/format/page.h>
#include <workloads/apart/native.h>

namespace stele::testing {
namespace {

using media::tape_op;
using media::tape_tag;

TEST(format_docs_tape, the_tables_are_the_structs) {
  using h = media::tape_header;
  using r = media::tape_record;
  const page p("tape.md");
  expect_places(p.table("| offset | size | header field |"),
                {STELE_PLACE(h, magic), STELE_PLACE(h, version), STELE_PLACE(h, flags),
                 STELE_PLACE(h, pool_size), STELE_PLACE(h, home_offset), STELE_PLACE(h, log_offset),
                 STELE_PLACE(h, log_size), STELE_PLACE(h, commit_offset),
                 STELE_PLACE(h, commit_size), STELE_PLACE(h, threads)},
                sizeof(h));
  expect_places(p.table("| offset | size | event field |"),
                {STELE_PLACE(r, op), STELE_PLACE(r, tag), STELE_PLACE(r, thread),
                 STELE_PLACE(r, length), STELE_PLACE(r, address)},
                sizeof(r));
}

TEST(format_docs_tape, operations_tags_and_flags_have_the_program_s_numbers) {
  const page p("tape.md");
  const auto ops = names_in(p.between("Ops: ", "before it)."));
  EXPECT_EQ(ops.size(), std::size_t(tape_op::end));
  for (const auto& [number, name] : ops) EXPECT_EQ(name, name_of(tape_op(number)));

  const auto rows = p.table("| offset | size | event field |");
  const std::map<std::uint64_t, std::string> tags = {
      {std::uint64_t(tape_tag::none), "none"},
      {std::uint64_t(tape_tag::data), "data"},
      {std::uint64_t(tape_tag::log_record), "log record"},
      {std::uint64_t(tape_tag::commit_record), "commit record"},
      {std::uint64_t(tape_tag::metadata), "metadata"},
      {std::uint64_t(tape_tag::volatile_memory), "volatile"}};
  EXPECT_EQ(names_in(rows.at(1).at(3)), tags);
  const auto bit_in = [](const std::string& cell) {
    return 1u << number_in(cell.substr(cell.find("bit ") + 4, 1));
  };
  EXPECT_EQ(bit_in(rows.at(0).at(3)), media::tape_bytes_follow);
  EXPECT_EQ(bit_in(rows.at(1).at(3)), media::tape_pointer_flag);
}

TEST(format_docs_tape, the_example_is_what_a_writer_writes) {
  auto tape = media::tape_writer::to_memory(
      {.pool_size = 64 << 10, .home_offset = 0x3000, .log_offset = 0x1000, .log_size = 4096});
  {
    const media::tape_writer::scoped_lock lock(*tape);
    const std::uint64_t value = 42;
    tape->event(tape_op::store, 0, 0x4000, sizeof value, &value);
    tape->event(tape_op::flush, 0, 0x4000, 64);
    tape->event(tape_op::fence, 0, 0, 0);
  }
  ASSERT_TRUE(tape->finish());
  const auto written = tape->memory();

  std::size_t end = 0;
  for (const std::string& line : page("tape.md").section("## Example").example()) {
    EXPECT_EQ(std::stoul(line, nullptr, 16), end) << line;
    const std::size_t count = bytes_in(line, "0000").size();
    ASSERT_LE(end + count, written.size());
    expect_bytes(line, "0000", written.data() + end, count);
    end += count;
  }
  EXPECT_EQ(end, written.size());
}

TEST(format_docs_native, the_costs_are_the_program_s) {
  const auto rows = page("native.md").table("| workload | instructions an operation |");
  EXPECT_EQ(rows.size(), 6u);
  for (const auto& row : rows) {
    const auto costs = workloads::native_costs_of(row.at(0));
    EXPECT_EQ(number_in(row.at(4)), costs.per_access) << row[0];
    EXPECT_EQ(number_in(row.at(5)), costs.per_line) << row[0];
    EXPECT_EQ(number_in(row.at(6)), costs.per_allocation) << row[0];
    EXPECT_EQ(number_in(row.at(7)), costs.per_operation) << row[0];
  }
}

}  // namespace
}  // namespace stele::testing
