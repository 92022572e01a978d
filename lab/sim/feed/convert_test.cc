// Traces of every format become the right events; each rule of the format refuses lines that break
// it.
#include <gtest/gtest.h>
#include <sim/feed/convert.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace stele::sim {
namespace {

using media::tape_op;

struct seen {
  tape_op op;
  unsigned thread;
  std::uint64_t address;  // for compute: instructions
  std::uint32_t length;
  friend bool operator==(const seen&, const seen&) = default;
};
std::ostream& operator<<(std::ostream& out, const seen& s) {
  return out << name_of(s.op) << " thread " << s.thread << " address " << s.address << " length "
             << s.length;
}

class trace_file {
 public:
  explicit trace_file(const std::string& text)
      : path_(testing::TempDir() + "stele-trace-" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~trace_file() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<seen> events_of(const media::tape_writer& tape) {
  auto reader = media::tape_reader::from_memory(tape.memory());
  std::vector<seen> events;
  for (auto e = reader->next(); e && *e; e = reader->next())
    events.push_back({(*e)->op, (*e)->thread, (*e)->address, (*e)->length});
  return events;
}

std::vector<seen> converted(std::string_view format, const std::string& text, std::uint64_t lines) {
  const trace_file file(text);
  const auto tape = media::tape_writer::to_memory(converted_shape);
  const auto done = convert_trace(format, file.path(), *tape);
  EXPECT_TRUE(done) << done.error().message;
  if (!done || !tape->finish()) return {};
  EXPECT_EQ(done->lines, lines);
  const auto events = events_of(*tape);
  EXPECT_EQ(done->events, events.size());
  return events;
}

std::string refusal(std::string_view format, const std::string& text) {
  const trace_file file(text);
  const auto tape = media::tape_writer::to_memory(converted_shape);
  const auto done = convert_trace(format, file.path(), *tape);
  EXPECT_FALSE(done) << format << " took " << text;
  if (done) return "";
  EXPECT_EQ(done.error().code, errc::corrupt);
  EXPECT_TRUE(done.error().message.starts_with(file.path() + ":")) << done.error().message;
  return done.error().message.substr(file.path().size() + 1);
}

using list = std::vector<seen>;

TEST(convert, lackey) {
  const std::string text =
      "==12== Lackey, an example Valgrind tool\n==12== \nI  04001000,3\nI  04001003,5\n S "
      "1fff000758,8\n L 00ff,16\nI  0400,1\n M 10,4\nI  1,1\n";
  EXPECT_EQ(converted("lackey", text, 9), (list{{tape_op::compute, 0, 1, 0},
                                                {tape_op::store, 0, 0x1fff000758, 8},
                                                {tape_op::load, 0, 0xff, 16},
                                                {tape_op::load, 0, 0x10, 4},
                                                {tape_op::store, 0, 0x10, 4},
                                                {tape_op::compute, 0, 1, 0}}));
}

TEST(convert, ramulator_of_a_processor) {
  EXPECT_EQ(converted("ramulator", "3 20734016\n0 0x40 0x1000000080\n", 2),
            (list{{tape_op::compute, 0, 3, 0},
                  {tape_op::load, 0, 20734016, 64},
                  {tape_op::load, 0, 0x40, 64},
                  {tape_op::store, 0, 0x1000000080, 64}}));
}

TEST(convert, ramulator_of_memory) {
  EXPECT_EQ(converted("ramulator-memory", "0x12345680 R\n0x4cbd56c7 W\n", 2),
            (list{{tape_op::load, 0, 0x12345680, 64}, {tape_op::store, 0, 0x4cbd56c0, 64}}));
}

TEST(convert, ramulator_2) {
  EXPECT_EQ(converted("ramulator2", "LD 0x80\nST 256\n", 2),
            (list{{tape_op::load, 0, 0x80, 64}, {tape_op::store, 0, 256, 64}}));
}

TEST(convert, dramsim3_makes_idle_cycles_compute) {
  EXPECT_EQ(converted("dramsim3",
                      "0x40 READ 2\n0x80 WRITE 3\n0xC0 READ 3\n0x0 READ 4\n0x40 WRITE 10\n", 5),
            (list{{tape_op::compute, 0, 2, 0},
                  {tape_op::load, 0, 0x40, 64},
                  {tape_op::store, 0, 0x80, 64},
                  {tape_op::load, 0, 0xC0, 64},
                  {tape_op::load, 0, 0, 64},
                  {tape_op::compute, 0, 4, 0},
                  {tape_op::store, 0, 0x40, 64}}));
}

TEST(convert, nvmain_with_and_without_old_data) {
  const list expected{{tape_op::compute, 1, 5, 0},
                      {tape_op::load, 1, 0x40, 64},
                      {tape_op::compute, 0, 6, 0},
                      {tape_op::store, 0, 0x80, 64}};
  EXPECT_EQ(converted("nvmain", "5 R 0x40 00ff 1\n6 W 80 0A 0\n", 2), expected);
  EXPECT_EQ(converted("nvmain", "NVMV1\n5 R 0x40 00ff 0xFF 1\n6 W 80 0A 00 0\n", 3), expected);
}

// A 32-bit cycle counter would read this cycle as 0.
TEST(convert, cycles_have_64_bits) {
  constexpr std::uint64_t late = std::uint64_t{1} << 40;
  const std::string cycle = std::to_string(late);
  EXPECT_EQ(converted("dramsim3",
                      "0x40 READ " + cycle + "\n0x40 READ " + std::to_string(2 * late) + "\n", 2),
            (list{{tape_op::compute, 0, late, 0},
                  {tape_op::load, 0, 0x40, 64},
                  {tape_op::compute, 0, late - 1, 0},
                  {tape_op::load, 0, 0x40, 64}}));
  EXPECT_EQ(converted("nvmain", cycle + " R 0x40 0 0", 1),
            (list{{tape_op::compute, 0, late, 0}, {tape_op::load, 0, 0x40, 64}}));
  EXPECT_NE(refusal("dramsim3", "0x40 READ 18446744073709551616\n"), "");
}

struct one_line {
  const char* format;
  const char* line;  // becomes one event
};
class each_format : public testing::TestWithParam<one_line> {};
INSTANTIATE_TEST_SUITE_P(
    all, each_format,
    testing::Values(one_line{"lackey", " L 40,8"}, one_line{"ramulator", "0 64"},
                    one_line{"ramulator-memory", "0x40 R"}, one_line{"ramulator2", "LD 64"},
                    one_line{"dramsim3", "0x40 READ 0"}, one_line{"nvmain", "0 R 40 0 0"}),
    [](const auto& i) {
      std::string name = i.param.format;
      std::erase(name, '-');
      return name;
    });

TEST_P(each_format, loses_no_line_and_reads_the_last_once) {
  const std::string line = GetParam().line;
  for (std::uint64_t n : {1u, 2u, 5u}) {
    std::string text;
    for (std::uint64_t i = 0; i < n; ++i) text += line + "\n";
    EXPECT_EQ(converted(GetParam().format, text, n).size(), n);
    text.pop_back();
    EXPECT_EQ(converted(GetParam().format, text, n).size(), n) << "without the last line's end";
  }
  EXPECT_EQ(converted(GetParam().format, "", 0).size(), 0u);
}

TEST_P(each_format, takes_lines_that_end_in_cr_lf) {
  const std::string line = GetParam().line;
  EXPECT_EQ(converted(GetParam().format, line + "\r\n" + line + "\r\n", 2).size(), 2u);
  EXPECT_EQ(converted(GetParam().format, line + "\n" + line + "\r", 2).size(), 2u);
}

TEST_P(each_format, refuses_blank_lines_comments_and_rubbish_with_their_place) {
  const std::string line = GetParam().line;
  for (const std::string bad : {"", " ", "# comment", "rubbish", "-1 -1 -1", "0x40", "0x R", "LD",
                                "LD 0x", "0x40 READ", "0 0 0 0 0 0 0 0", "99999999999999999999"}) {
    const std::string message = refusal(GetParam().format, line + "\n" + bad + "\n" + line + "\n");
    EXPECT_TRUE(message.starts_with("2: \"" + bad + "\": expected ")) << message;
  }
  EXPECT_TRUE(refusal(GetParam().format, line + "\n" + line + " 1 2 3 4\n").starts_with("2: "));
  EXPECT_TRUE(refusal(GetParam().format, line + "\n" + line + "x").starts_with("2: "))
      << "in a last line without an end";
}

TEST_P(each_format, shortens_what_it_shows_of_a_line) {
  const std::string message = refusal(GetParam().format, std::string(5000, 'x') + "\n");
  EXPECT_LT(message.size(), 500u);
  EXPECT_NE(message.find("1: \"" + std::string(80, 'x') + "..\""), std::string::npos) << message;
  EXPECT_NE(refusal(GetParam().format, std::string("a\0\x01z", 4)).find("a\\x00\\x01z"),
            std::string::npos);
  EXPECT_NE(
      refusal(GetParam().format, std::string(70'000, ' ')).find("a line of more than 65536 bytes"),
      std::string::npos);
  EXPECT_NE(refusal(GetParam().format, std::string(2'000'000, ' ') + "\n")
                .find("a line of more than 65536 bytes"),
            std::string::npos);
}

TEST(convert, refuses_what_only_one_format_would_take) {
  const std::pair<const char*, const char*> bad[] = {{"lackey", "I 04001000,3"},
                                                     {"lackey", " L 04001000"},
                                                     {"lackey", " L 0400100g,8"},
                                                     {"lackey", " L 0x40,8"},
                                                     {"lackey", " L 40,0"},
                                                     {"lackey", " L 40,8 "},
                                                     {"lackey", " X 40,8"},
                                                     {"lackey", "L 40,8"},
                                                     {"ramulator", "3"},
                                                     {"ramulator", "0x3 64"},
                                                     {"ramulator", "3 064"},
                                                     {"ramulator", "3 64 W"},
                                                     {"ramulator", "3 ff"},
                                                     {"ramulator-memory", "40 R"},
                                                     {"ramulator-memory", "0x40 r"},
                                                     {"ramulator-memory", "0x40 RW"},
                                                     {"ramulator-memory", "0x40 R 5"},
                                                     {"ramulator2", "LD 0x40 5"},
                                                     {"ramulator2", "ld 0x40"},
                                                     {"ramulator2", "LD ff"},
                                                     {"dramsim3", "0x40 READ -1"},
                                                     {"dramsim3", "0x40 READ 1.5"},
                                                     {"dramsim3", "0x40 R 5"},
                                                     {"dramsim3", "40 READ 5"},
                                                     {"nvmain", "5 R 40 0 0 0"},
                                                     {"nvmain", "5 R 40 zz 0"},
                                                     {"nvmain", "5 R 40 0 65535"},
                                                     {"nvmain", "NVMV2"},
                                                     {"nvmain", "NVMV1\n5 R 40 0 0"},
                                                     {"nvmain", "5 R 40 0 0\nNVMV1"}};
  for (const auto& [format, text] : bad)
    EXPECT_NE(refusal(format, text), "") << format << ": " << text;
}

TEST(convert, refuses_time_that_goes_back) {
  EXPECT_NE(refusal("dramsim3", "0x40 READ 9\n0x40 READ 8\n")
                .find("2: \"0x40 READ 8\": expected a cycle not before that of the line before, 9"),
            std::string::npos);
  EXPECT_NE(refusal("nvmain", "9 R 40 0 0\n8 R 40 0 1\n"), "");
}

// K1: what is outside of the persistent range gets pages in volatile memory, in their order.
TEST(convert, gives_volatile_addresses_places_in_the_volatile_memory) {
  const trace_file file(
      " S 04a01008,8\n L 1fff000758,8\n S 05000000,4\n L 04a00ffe,4\n"
      " L 1fff000ffc,8\n");
  const auto range = parse_persistent_range("0x4a01000-0x4a03000");
  ASSERT_TRUE(range) << range.error().message;
  const auto tape = media::tape_writer::to_memory({.pool_size = 0x2000, .record_bytes = false});
  ASSERT_TRUE(convert_trace("lackey", file.path(), *tape, {}, *range));
  ASSERT_TRUE(tape->finish());
  constexpr std::uint64_t at = media::tape_volatile_at;
  EXPECT_EQ(events_of(*tape), (list{{tape_op::store, 0, 8, 8},
                                    {tape_op::load, 0, at + 0x758, 8},
                                    {tape_op::store, 0, at + 0x1000, 4},
                                    {tape_op::load, 0, at + 0x2ffe, 2},
                                    {tape_op::load, 0, 0, 2},
                                    {tape_op::load, 0, at + 0xffc, 4},
                                    {tape_op::load, 0, at + 0x3000, 4}}));
  auto reader = media::tape_reader::from_memory(tape->memory());
  EXPECT_EQ((*reader->next())->tag, media::tape_tag::data);
  EXPECT_EQ((*reader->next())->tag, media::tape_tag::volatile_memory);
}

TEST(convert, refuses_a_range_that_is_not_of_whole_pages) {
  for (const char* text : {"", "0x1000", "0x2000-0x1000", "0x1000-0x1000", "0x1001-0x2000",
                           "0x1000-0x2001", "1000h-2000h"}) {
    const auto range = parse_persistent_range(text);
    ASSERT_FALSE(range) << text;
    EXPECT_NE(range.error().message.find("give begin-end"), std::string::npos);
  }
}

TEST(convert, names_its_formats_and_tells_missing_files) {
  const auto tape = media::tape_writer::to_memory(converted_shape);
  EXPECT_EQ(convert_trace("ramulator3", "/dev/null", *tape).error().code, errc::invalid_argument);
  EXPECT_NE(convert_trace("", "/dev/null", *tape)
                .error()
                .message.find("lackey, ramulator, ramulator-memory, ramulator2, dramsim3, nvmain"),
            std::string::npos);
  EXPECT_EQ(convert_trace("lackey", "/no/such/file", *tape).error().code, errc::not_found);
  EXPECT_EQ(convert_trace("lackey", "/", *tape).error().code, errc::io);
}

TEST(convert, tells_its_progress_and_stops_when_told) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "0 " + std::to_string(64 * i) + "\n";
  const trace_file file(text);
  const auto tape = media::tape_writer::to_memory(converted_shape);
  std::uint64_t told = 0;
  const auto whole = convert_trace("ramulator", file.path(), *tape, [&](std::uint64_t bytes) {
    EXPECT_GE(bytes, told);
    return (told = bytes, true);
  });
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->lines, 400'000u);
  EXPECT_GT(told, text.size() / 2);
  const auto stopped =
      convert_trace("ramulator", file.path(), *tape, [](std::uint64_t) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("stopped after line 65536"), std::string::npos);
}

}  // namespace
}  // namespace stele::sim
