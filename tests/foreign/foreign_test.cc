// The parts of the explorer of foreign programs that need no valgrind: recordings made by hand, a
// shell as the checker.
#include <foreign/foreign_explorer.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace stele::foreign {
namespace {

using testing::HasSubstr;

// A recording in a file of its own folder. Its pool has 4096 bytes.
class made_recording {
 public:
  made_recording() {
    std::string folder = std::filesystem::temp_directory_path() / "stele-foreign-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    add(foreign_start, 4096, "/pools/p");
  }
  ~made_recording() { std::filesystem::remove_all(folder_); }

  made_recording& add(foreign_event_kind kind, std::uint64_t offset, std::string_view bytes = "") {
    const foreign_event head{
        FOREIGN_MAGIC, static_cast<unsigned short>(kind), 1, 0, static_cast<unsigned>(bytes.size()),
        offset};
    content_.append(reinterpret_cast<const char*>(&head), sizeof head).append(bytes);
    return *this;
  }
  result<trace> read() const {
    std::ofstream(path()) << content_;
    return trace::read(path());
  }
  result<findings> explored(const std::string& command, explore_settings how = {}) const {
    const auto t = read();
    if (!t) return std::unexpected(t.error());
    auto c = checker::make(checked_by(command));
    return c ? explore(*t, *c, how) : std::unexpected(c.error());
  }
  check_settings checked_by(const std::string& command) const {
    return {command, folder_, "p", 2, std::chrono::milliseconds(20'000)};
  }
  std::string path() const { return folder_ + "/trace"; }
  std::string content_;

 private:
  std::string folder_;
};

// "a" at 0 is said to be valid by "v" at 64.
const std::string valid_check = "grep -q v {} || exit 0; grep -q a {} || { echo torn; exit 3; }";

made_recording& store_both(made_recording& r) {
  return r.add(foreign_store, 0, "a").add(foreign_store, 64, "v");
}

TEST(foreign, finds_a_missing_flush) {
  made_recording r;
  store_both(r).add(foreign_flush, 64).add(foreign_fence, 0).add(foreign_end, 0);
  const auto f = r.explored(valid_check);
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_GE(f->violating, 1u);
  EXPECT_EQ(f->what, "exit status 3: torn");
  EXPECT_EQ(f->smallest.text(), "1 kept 0x0=0");
}

TEST(foreign, a_violation_that_is_sought_is_not_hidden_by_others) {
  made_recording r;
  store_both(r).add(foreign_store, 128, "w").add(foreign_flush, 64).add(foreign_fence, 0);
  r.add(foreign_flush, 0).add(foreign_flush, 128).add(foreign_fence, 0).add(foreign_end, 0);
  const std::string command =
      "grep -q v {} && ! grep -q a {} && { echo torn; exit 3; }; "
      "grep -q w {} && ! grep -q v {} && { echo early; exit 4; }; exit 0";
  explore_settings how;
  how.max_violations = 1;
  how.about = "early";
  const auto f = r.explored(command, how);
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_GE(f->about, 1u);
  EXPECT_EQ(f->what, "exit status 4: early");
  EXPECT_EQ(f->smallest.text(), "1 kept 0x40=0");
  how.about = "never said";
  const auto none = r.explored(command, how);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->about, 0u);
  EXPECT_GT(none->violating, 1u);
}

TEST(foreign, accepts_ordered_stores) {
  made_recording r;
  r.add(foreign_store, 0, "a").add(foreign_flush, 0).add(foreign_fence, 0);
  r.add(foreign_store, 64, "v").add(foreign_flush, 64).add(foreign_fence, 0).add(foreign_end, 0);
  const auto f = r.explored(valid_check);
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(f->violating, 0u);
  EXPECT_EQ(f->states, 3u);
  EXPECT_EQ(f->points, 3u);
}

TEST(foreign, a_flush_without_a_fence_orders_nothing) {
  made_recording r;
  r.add(foreign_store, 0, "a").add(foreign_flush, 0);
  r.add(foreign_store, 64, "v").add(foreign_flush, 64).add(foreign_fence, 0).add(foreign_end, 0);
  EXPECT_GE(r.explored(valid_check)->violating, 1u);
}

TEST(foreign, clflush_orders_without_a_fence) {
  made_recording r;
  r.add(foreign_store, 0, "a").add(foreign_ordered_flush, 0);
  r.add(foreign_store, 64, "v").add(foreign_ordered_flush, 64).add(foreign_end, 0);
  EXPECT_EQ(r.explored(valid_check)->violating, 0u);
}

TEST(foreign, clflush_fences_no_other_line) {
  made_recording r;
  r.add(foreign_store, 0, "a").add(foreign_flush, 0);
  r.add(foreign_store, 128, "x").add(foreign_ordered_flush, 128);
  r.add(foreign_store, 64, "v").add(foreign_ordered_flush, 64).add(foreign_end, 0);
  EXPECT_GE(r.explored(valid_check)->violating, 1u);
}

TEST(foreign, a_sync_makes_its_range_durable) {
  made_recording r;
  const std::uint64_t size = 4096;
  const std::string_view bytes(reinterpret_cast<const char*>(&size), sizeof size);
  r.add(foreign_store, 0, "a").add(foreign_sync, 0, bytes);
  r.add(foreign_store, 64, "v").add(foreign_sync, 0, bytes).add(foreign_end, 0);
  EXPECT_EQ(r.explored(valid_check)->violating, 0u);
}

TEST(foreign, a_stream_is_durable_after_a_fence_only) {
  made_recording r;
  r.add(foreign_stream, 0, "aaaaaaaa").add(foreign_store, 64, "v").add(foreign_flush, 64);
  r.add(foreign_fence, 0).add(foreign_end, 0);
  EXPECT_GE(r.explored(valid_check)->violating, 1u);
}

TEST(foreign, the_checker_sees_what_was_printed) {
  made_recording r;
  r.add(foreign_store, 0, "a").add(foreign_output, 0, "done").add(foreign_flush, 0);
  r.add(foreign_fence, 0).add(foreign_end, 0);
  const auto f = r.explored("grep -q done {output} || exit 0; grep -q a {}");
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(f->violating, 1u);
}

TEST(foreign, a_state_is_replayed_from_its_line) {
  made_recording r;
  store_both(r).add(foreign_flush, 64).add(foreign_fence, 0).add(foreign_end, 0);
  const auto t = r.read();
  auto c = checker::make(r.checked_by(valid_check));
  const auto bad = replay(*t, *c, *state_line::parse("1 lost 0x40=1"), r.path() + ".image");
  ASSERT_TRUE(bad) << bad.error().message;
  EXPECT_FALSE(bad->seen.consistent);
  EXPECT_EQ(bad->kept.size(), 1u);
  EXPECT_EQ(bad->lost.size(), 1u);
  EXPECT_EQ(std::filesystem::file_size(r.path() + ".image"), 4096u);
  EXPECT_TRUE(replay(*t, *c, *state_line::parse("1 kept"), "")->seen.consistent);
  EXPECT_THAT(replay(*t, *c, *state_line::parse("9 kept"), "").error().message,
              HasSubstr("2 crash points"));
  EXPECT_THAT(replay(*t, *c, *state_line::parse("1 kept 0x80=1"), "").error().message,
              HasSubstr("no such state"));
}

TEST(foreign, lines_of_states_are_read_back) {
  for (const char* text : {"1 kept", "12 lost 0x40=1", "3 kept 0x0=2,0xfc0=17"})
    EXPECT_EQ(state_line::parse(text)->text(), text);
  for (const char* text :
       {"", "1", "0 kept", "1 some", "1 kept 64", "1 kept 0x41=1", "1 kept 0x40=1 2"})
    EXPECT_FALSE(state_line::parse(text)) << text;
}

TEST(foreign, refuses_checkers_that_cannot_judge) {
  made_recording r;
  store_both(r).add(foreign_end, 0);
  EXPECT_THAT(r.explored("true").error().message, HasSubstr("write {} where"));
  EXPECT_THAT(r.explored("/no/such/checker {}").error().message, HasSubstr("cannot be run"));
  EXPECT_THAT(r.explored("false {}").error().message, HasSubstr("without any crash"));
}

TEST(foreign, a_checker_that_hangs_or_dies_has_found_a_violation) {
  made_recording r;
  store_both(r).add(foreign_end, 0);
  const auto t = r.read();
  auto settings = r.checked_by("grep -q v {} || sleep 100");
  settings.timeout = std::chrono::milliseconds(300);
  auto c = checker::make(settings);
  EXPECT_THAT(replay(*t, *c, *state_line::parse("1 lost"), "")->seen.what,
              HasSubstr("did not end"));
  auto dying = checker::make(r.checked_by("grep -q v {} || kill -SEGV $$"));
  EXPECT_THAT(replay(*t, *dying, *state_line::parse("1 lost"), "")->seen.what,
              HasSubstr("signal 11"));
}

TEST(foreign, refuses_damaged_recordings) {
  made_recording r;
  store_both(r);
  EXPECT_THAT(r.read().error().message, HasSubstr("ends before the program did"));
  r.add(foreign_end, 0);
  r.content_.pop_back();
  EXPECT_THAT(r.read().error().message, HasSubstr("cut off"));
  r.content_ = "text";
  EXPECT_THAT(r.read().error().message, HasSubstr("is not a recording"));
  EXPECT_THAT(trace::read("/no/such/trace").error().message, HasSubstr("open /no/such/trace"));
}

}  // namespace
}  // namespace stele::foreign
