// Repairs of a pool file: what is provably right is repaired, whatever fails in between; all else
// is left alone.
#include <gmock/gmock.h>
#include <stele/kv.h>
#include <tests/conformance/call_failure.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

class repair : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("pool"); }
  // A closed store; text() is its file.
  void make(const std::string& mechanism = "") {
    auto store = kv::open(
        path(),
        {.create_size = 256 << 10,
         .engine = {.mechanism = mechanism, .media = "process", .log_size = 4096, .log_count = 3}});
    ASSERT_TRUE(succeeds(store));
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE(succeeds(store->put(std::to_string(i), "a value of " + std::to_string(i))));
    ASSERT_TRUE(succeeds(store->close()));
    text_ = text_of(path());
  }
  void expect_whole() const {
    auto store = kv::open(path(), {.engine = {.media = "process"}});
    ASSERT_TRUE(succeeds(store));
    EXPECT_EQ(*store->size(), 200u);
    EXPECT_TRUE(succeeds(store->put("one", "more")));
    EXPECT_TRUE(succeeds(store->check()));
    ASSERT_TRUE(succeeds(store->close()));
    EXPECT_TRUE(succeeds(detail::check_pool(path())));
  }
  // Overwrites bytes of the file as it was made.
  void damage(std::size_t at, std::size_t bytes, char with) {
    std::string damaged = text_;
    damaged.replace(at, bytes, std::string(bytes, with));
    write_text(path(), damaged);
  }
  std::vector<storage::repair_step> repaired() {
    std::vector<storage::repair_step> steps;
    const auto outcome = detail::repair_pool(path(), steps);
    EXPECT_TRUE(succeeds(outcome));
    return steps;
  }
  void remove_saved_pages() const {
    for (const auto& e : fs::directory_iterator(fs::path(path()).parent_path()))
      if (e.path().filename().string().starts_with("pool.page-")) fs::remove(e.path());
  }
  scratch_directory dir_;
  std::string text_;
};

TEST_F(repair, a_sound_pool_is_left_as_it_is) {
  make();
  EXPECT_TRUE(repaired().empty());
  EXPECT_EQ(text_of(path()), text_);
}

TEST_F(repair, a_header_is_restored_from_the_other_page_and_keeps_the_page_as_it_was) {
  make();
  damage(0, 512, '\0');  // the whole sector
  const std::string damaged = text_of(path());
  EXPECT_FALSE(detail::open_path(path(), {}));
  const auto steps = repaired();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(text_of(path()), text_);
  EXPECT_EQ(text_of(steps[0].saved_page), damaged.substr(0, 4096));
  expect_whole();
}

TEST_F(repair, the_copy_of_a_header_is_restored_too) {
  make();
  damage(format::header_copy_offset, 4096, '\xff');
  const auto steps = repaired();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].offset, format::header_copy_offset);
  EXPECT_EQ(std::memcmp(text_of(path()).data() + format::header_copy_offset, text_.data(), 256), 0);
  expect_whole();
}

TEST_F(repair, of_a_damaged_header_and_copy_nothing_is_changed) {
  make();
  damage(0, 2 * 4096, '\0');
  const std::string damaged = text_of(path());
  std::vector<storage::repair_step> steps;
  const auto outcome = detail::repair_pool(path(), steps);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errc::corrupt);
  EXPECT_EQ(text_of(path()), damaged);
}

TEST_F(repair, a_log_of_a_closed_pool_is_marked_as_empty) {
  for (const std::string& mechanism : durable_mechanisms()) {
    if ((*detail::find_mechanism(mechanism))->home == format::home_kind::log) continue;
    SCOPED_TRACE(mechanism);
    make(mechanism);
    const auto h = *storage::pool_file::peek(path());
    damage(h.log_offset + h.log_size, 64, '\x5a');  // the head of the second log
    EXPECT_FALSE(detail::check_pool(path()) && kv::open(path(), {.engine = {.media = "process"}}));
    write_text(path(), text_);
    damage(h.log_offset + h.log_size, 64, '\x5a');
    EXPECT_EQ(repaired().size(), 1u);
    expect_whole();
    fs::remove(path());
    remove_saved_pages();
  }
}

TEST_F(repair, lines_of_a_lap_to_come_in_a_closed_log_are_repaired) {
  make();
  const auto h = *storage::pool_file::peek(path());
  damage(h.log_offset + 64, h.log_size - 64, '\xff');
  if (detail::check_pool(path())) damage(h.log_offset + 64, h.log_size - 64, '\x7f');
  EXPECT_EQ(repaired().size(), 1u);
  expect_whole();
}

TEST_F(repair, a_log_head_of_a_pool_that_was_not_closed_is_left_alone) {
  auto store = kv::open(
      path(), {.create_size = 256 << 10, .engine = {.media = "process", .log_size = 4096}});
  ASSERT_TRUE(succeeds(store));
  ASSERT_TRUE(succeeds(store->put("a", "b")));
  std::string open = text_of(path());
  ASSERT_TRUE(succeeds(store->close()));
  const auto h = *storage::pool_file::peek(path());
  open.replace(h.log_offset, 8, std::string(8, '\x5a'));
  write_text(path(), open);
  std::vector<storage::repair_step> steps;
  const auto outcome = detail::repair_pool(path(), steps);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("--salvage"));
  EXPECT_EQ(text_of(path()), open);
}

TEST_F(repair, a_pool_in_use_is_refused) {
  make();
  const auto store = kv::open(path(), {.engine = {.media = "process"}});
  std::vector<storage::repair_step> steps;
  EXPECT_EQ(detail::repair_pool(path(), steps).error().code, errc::in_use);
  EXPECT_TRUE(steps.empty());
}

// Every system call fails in turn, once or with all later ones: the pool is as before, or one of
// its parts is repaired, or both are. A later repair ends the work.
TEST_F(repair, is_whole_or_not_done_whatever_call_fails) {
  make();
  const auto h = *storage::pool_file::peek(path());
  std::string damaged = text_, half = text_;
  damaged.replace(0, 256, std::string(256, '\0'));
  half.replace(h.log_offset, 8, std::string(8, '\x5a'));
  damaged.replace(h.log_offset, 8, std::string(8, '\x5a'));
  for (const bool permanent : {false, true}) {
    bool hit = true;
    std::uint64_t k = 1;
    for (; hit; ++k) {
      SCOPED_TRACE("call " + std::to_string(k) + (permanent ? " and all later" : "") + " fails");
      write_text(path(), damaged);
      std::vector<storage::repair_step> steps;
      {
        const call_failure failure(k, permanent, EIO);
        (void)detail::repair_pool(path(), steps);
        hit = failure.hit();
      }
      const std::string now = text_of(path());
      const bool known = now == damaged || now == half ||
                         (now.substr(0, h.log_offset) == text_.substr(0, h.log_offset) &&
                          now.substr(h.log_offset + 8) == text_.substr(h.log_offset + 8));
      ASSERT_TRUE(known);
      (void)repaired();
      expect_whole();
      if (HasFatalFailure()) return;
      remove_saved_pages();
    }
    EXPECT_GT(k, 10u);
  }
}

}  // namespace
}  // namespace stele::testing
