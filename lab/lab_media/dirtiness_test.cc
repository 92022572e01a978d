// Hand-made tapes: which bytes are dirty, what writes them back, and to which part a line counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lab_media/dirtiness.h>

namespace stele::media {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t log_at = 4096, home = 1 << 14;
constexpr tape_options shape{.pool_size = 1 << 16,
                             .home_offset = home,
                             .log_offset = log_at,
                             .log_size = 4096,
                             .record_bytes = false};

struct event {
  tape_op op;
  std::uint64_t address;
  std::uint32_t length;
  unsigned thread = 0;
};

dirtiness_by_part read(std::initializer_list<event> events) {
  auto tape = tape_writer::to_memory(shape);
  {
    const tape_writer::scoped_lock lock(*tape);
    for (const event& e : events) tape->event(e.op, e.thread, e.address, e.length);
  }
  EXPECT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  const auto read = dirtiness_of(*reader);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(dirtiness_by_part{});
}

using enum tape_op;

// A11
TEST(dirtiness, is_the_bytes_stored_since_the_last_flush) {
  const auto d = read({{store, home, 8}, {flush, home, 1}, {store, home, 16}, {flush, home, 64}});
  EXPECT_EQ(d.home.lines[8], 1u);
  EXPECT_EQ(d.home.lines[16], 1u);
  EXPECT_EQ(d.home.total(), 2u);
  EXPECT_DOUBLE_EQ(d.home.mean(), 12.0 / 64);
}

TEST(dirtiness, counts_a_byte_once_however_often_it_is_stored_to) {
  const auto d = read(
      {{store, home + 8, 8}, {store, home + 8, 8}, {store, home + 12, 8, 1}, {flush, home, 64}});
  EXPECT_EQ(d.home.lines[12], 1u);
}

TEST(dirtiness, may_be_of_the_bytes_that_change) {
  tape_options with_bytes = shape;
  with_bytes.record_bytes = true;
  auto tape = tape_writer::to_memory(with_bytes);
  std::vector<std::byte> pool(shape.pool_size);
  pool[home + 3] = std::byte{7};
  tape->image(pool.data(), pool.size());
  {
    const tape_writer::scoped_lock lock(*tape);
    std::vector<std::byte> line(64);
    line[3] = std::byte{7}, line[9] = std::byte{1};
    for (int i = 0; i < 2; ++i) {
      tape->event(store, 0, home, 64, line.data());
      tape->event(flush, 0, home, 64);
    }
  }
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  const auto d = dirtiness_of(*reader, [] { return false; }, dirty_bytes::changed);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->home.lines[1], 1u);
  EXPECT_EQ(d->home.lines[0], 1u);
}

TEST(dirtiness, is_of_lines_whatever_the_ranges) {
  const auto d = read({{store, home + 60, 100}, {flush, home + 60, 100}});
  EXPECT_EQ(d.home.lines[4], 1u);
  EXPECT_EQ(d.home.lines[64], 1u);
  EXPECT_EQ(d.home.lines[32], 1u);
  EXPECT_EQ(d.home.total(), 3u);
}

TEST(dirtiness, of_a_line_flushed_without_a_store_is_none) {
  const auto d = read({{flush, home, 128}});
  EXPECT_EQ(d.home.lines[0], 2u);
  EXPECT_EQ(d.home.mean(), 0);
}

TEST(dirtiness, of_a_bulk_persist_is_of_the_lines_stored_to_alone) {
  const auto d = read({{store, home + 640, 64}, {bulk, home, 4096}, {flush, home + 640, 64}});
  EXPECT_EQ(d.home.lines[64], 1u);
  EXPECT_EQ(d.home.lines[0], 1u) << "the flush found it clean";
  EXPECT_EQ(d.home.total(), 2u);
}

TEST(dirtiness, of_streamed_lines_is_reckoned_at_the_fence_of_their_thread) {
  const std::uint64_t record = log_at + 64;
  const auto d = read({{stream, record, 24},
                       {stream, record + 24, 24},
                       {stream, record + 512, 64, 1},
                       {fence, 0, 0}});
  EXPECT_EQ(d.log.lines[48], 1u);
  EXPECT_EQ(d.log.total(), 1u);
}

TEST(dirtiness, is_kept_apart_for_home_log_and_the_rest) {
  const auto d = read({{store, home, 1},
                       {flush, home, 1},
                       {store, log_at + 64, 2},
                       {flush, log_at + 64, 2},
                       {store, log_at, 3},
                       {flush, log_at, 3},
                       {store, 64, 3},
                       {flush, 64, 3}});
  EXPECT_EQ(d.home.lines[1], 1u);
  EXPECT_EQ(d.log.lines[2], 1u);
  EXPECT_EQ(d.control.lines[3], 2u);
  EXPECT_EQ(d.all().total(), 4u);
  EXPECT_DOUBLE_EQ(d.all().mean(), 9.0 / (4 * 64));
}

TEST(dirtiness, is_distributed_by_eighths_with_clean_lines_apart) {
  dirtiness d;
  for (const std::size_t bytes : {0, 1, 8, 9, 57, 64}) ++d.lines[bytes];
  EXPECT_THAT(d.eighths(), ElementsAre(1u, 2u, 1u, 0u, 0u, 0u, 0u, 0u, 2u));
}

TEST(dirtiness, of_a_tape_without_write_backs_is_of_no_lines) {
  const auto d = read({{store, home, 8}, {stream, log_at + 64, 8}, {fence, 0, 0, 1}});
  EXPECT_EQ(d.all().total(), 0u);
  EXPECT_EQ(d.all().mean(), 0);
}

TEST(dirtiness, of_a_tape_that_was_cut_off_is_an_error) {
  const auto tape = tape_writer::to_memory(shape);
  auto reader = tape_reader::from_memory(tape->memory());
  ASSERT_TRUE(reader);
  const auto d = dirtiness_of(*reader);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, errc::corrupt);
}

}  // namespace
}  // namespace stele::media
