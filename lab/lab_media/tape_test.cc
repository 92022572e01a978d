// Tapes: a reader gets what was written; a truncated or damaged tape is refused with the number and
// place of the event.
#include <base/rng.h>
#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <lab_media/tape.h>

#include <fstream>
#include <thread>

namespace stele::media {
namespace {

constexpr tape_options shape{
    .pool_size = 1 << 16, .home_offset = 1 << 14, .log_offset = 4096, .log_size = 4096};

struct wanted {
  tape_op op;
  unsigned thread;
  std::uint64_t address;
  std::vector<std::byte> bytes;
};

std::vector<wanted> write_some(tape_writer& tape, std::uint64_t seed, std::size_t count) {
  base::rng random(seed);
  std::vector<wanted> all;
  const tape_writer::scoped_lock lock(tape);
  for (std::size_t i = 0; i < count; ++i) {
    const auto op = static_cast<tape_op>(1 + random.below(12));
    wanted w{op, static_cast<unsigned>(random.below(9)), random.below(1 << 16), {}};
    if (op == tape_op::store || op == tape_op::stream)
      for (std::uint64_t n = 1 + random.below(100); n != 0; --n)
        w.bytes.push_back(std::byte(random()));
    tape.event(op, w.thread, w.address, static_cast<std::uint32_t>(w.bytes.size()),
               w.bytes.empty() ? nullptr : w.bytes.data());
    all.push_back(std::move(w));
  }
  return all;
}

void expect_events(tape_reader& reader, const std::vector<wanted>& all) {
  for (const wanted& w : all) {
    auto e = reader.next();
    ASSERT_TRUE(e && *e);
    ASSERT_EQ((*e)->op, w.op);
    ASSERT_EQ((*e)->thread, w.thread);
    ASSERT_EQ((*e)->address, w.address);
    ASSERT_TRUE(std::ranges::equal((*e)->bytes, w.bytes));
  }
  const auto end = reader.next();
  ASSERT_TRUE(end && !*end);
  const auto still = reader.next();
  ASSERT_TRUE(still && !*still);
}

// Counts the events to the end, or returns the first error.
result<std::uint64_t> count_events(std::span<const std::byte> bytes) {
  auto reader = tape_reader::from_memory(bytes);
  if (!reader) return std::unexpected(reader.error());
  for (std::uint64_t n = 0;; ++n) {
    auto e = reader->next();
    if (!e) return std::unexpected(e.error());
    if (!*e) return n;
  }
}

TEST(tape, events_come_back_from_memory) {
  auto tape = tape_writer::to_memory(shape);
  const auto all = write_some(*tape, 1, 3000);
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->header().home_offset, shape.home_offset);
  expect_events(*reader, all);
}

TEST(tape, events_come_back_from_a_file_larger_than_the_buffers) {
  testing::scratch_directory dir;
  std::vector<wanted> all;
  {
    auto tape = tape_writer::to_file(dir.file("tape"), shape);
    ASSERT_TRUE(tape);
    all = write_some(**tape, 2, 60000);
    ASSERT_TRUE((*tape)->finish());
  }
  auto reader = tape_reader::open(dir.file("tape"));
  ASSERT_TRUE(reader);
  expect_events(*reader, all);
}

// As when the run that it records fails.
TEST(tape, that_is_not_finished_leaves_the_file_that_was_there) {
  testing::scratch_directory dir;
  std::ofstream(dir.file("tape")) << "old";
  for (const char* const name : {"tape", "new"}) {
    auto tape = tape_writer::to_file(dir.file(name), shape);
    ASSERT_TRUE(tape);
    write_some(**tape, 2, 60000);
  }
  EXPECT_EQ(std::filesystem::file_size(dir.file("tape")), 3u);
  EXPECT_FALSE(std::filesystem::exists(dir.file("new")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.file("")), {}), 1);
}

TEST(tape, an_image_skips_zeroes) {
  auto tape = tape_writer::to_memory(shape);
  std::vector<std::byte> pool(5 * 4096);
  pool[4096 + 7] = std::byte{1};
  tape->image(pool.data(), pool.size());
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  auto e = reader->next();
  ASSERT_TRUE(e && *e);
  EXPECT_EQ((*e)->op, tape_op::image);
  EXPECT_EQ((*e)->address, 4096u);
  EXPECT_EQ((*e)->bytes.size(), 4096u);
  EXPECT_FALSE(reader->next()->has_value());
}

TEST(tape, commit_lines_have_a_tag_where_logs_have_such) {
  tape_options with_commits = shape;
  with_commits.commit_offset = 64, with_commits.commit_size = 128;
  auto tape = tape_writer::to_memory(with_commits);
  {
    const tape_writer::scoped_lock lock(*tape);
    for (const std::uint64_t in_log : {0u, 64u, 191u, 192u})
      tape->event(tape_op::flush, 0, 2 * 4096 + in_log, 1);
  }
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  EXPECT_EQ(reader->header().commit_offset, 64u);
  EXPECT_EQ(reader->header().commit_size, 128u);
  for (const tape_tag tag :
       {tape_tag::metadata, tape_tag::commit_record, tape_tag::commit_record, tape_tag::log_record})
    EXPECT_EQ((*reader->next())->tag, tag);
}

TEST(tape, tags_name_the_part_of_the_pool) {
  auto tape = tape_writer::to_memory(shape);
  {
    const tape_writer::scoped_lock lock(*tape);
    for (const std::uint64_t address : {0u, 4096u, 4096u + 64, 2 * 4096u, 1u << 14})
      tape->event(tape_op::flush, 0, address, 8);
  }
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  for (const tape_tag tag : {tape_tag::metadata, tape_tag::metadata, tape_tag::log_record,
                             tape_tag::metadata, tape_tag::data}) {
    auto e = reader->next();
    ASSERT_TRUE(e && *e);
    EXPECT_STREQ(name_of((*e)->tag), name_of(tag));
  }
}

TEST(tape, is_refused_at_every_length_but_the_whole) {
  auto tape = tape_writer::to_memory(shape);
  write_some(*tape, 3, 20);
  ASSERT_TRUE(tape->finish());
  const auto whole = tape->memory();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto n = count_events(whole.first(length));
    ASSERT_FALSE(n) << length;
    ASSERT_EQ(n.error().code, length < 64 ? errc::not_a_pool : errc::corrupt);
    ASSERT_TRUE(length < 64 || n.error().message.find("event ") != std::string::npos)
        << n.error().message;
  }
  EXPECT_EQ(count_events(whole).value_or(0), 20u);
}

TEST(tape, garbage_is_refused_or_read_but_never_more) {
  auto tape = tape_writer::to_memory(shape);
  write_some(*tape, 4, 200);
  ASSERT_TRUE(tape->finish());
  const std::vector<std::byte> whole(tape->memory().begin(), tape->memory().end());
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    base::rng random(seed);
    auto damaged = whole;
    for (std::uint64_t n = 1 + random.below(4); n != 0; --n)
      damaged[random.below(damaged.size())] = std::byte(random());
    const auto n = count_events(damaged);
    ASSERT_LE(n.value_or(0), damaged.size() / sizeof(tape_record));
  }
  std::vector<std::byte> noise(whole.begin(), whole.begin() + 64);
  noise.resize(4096, std::byte{0xFF});
  const auto n = count_events(noise);
  ASSERT_FALSE(n);
  EXPECT_NE(n.error().message.find("event 0 at byte 64"), std::string::npos) << n.error().message;
}

TEST(tape, missing_files_other_versions_and_unwritable_paths_are_told) {
  testing::scratch_directory dir;
  EXPECT_EQ(tape_reader::open(dir.file("none")).error().code, errc::not_found);
  EXPECT_EQ(tape_writer::to_file(dir.file("no/where"), shape).error().code, errc::not_found);
  auto tape = tape_writer::to_memory(shape);
  ASSERT_TRUE(tape->finish());
  std::vector<std::byte> bytes(tape->memory().begin(), tape->memory().end());
  bytes[8] = std::byte{9};
  EXPECT_EQ(tape_reader::from_memory(bytes).error().code, errc::version);
  std::ofstream(dir.file("text"))
      << "this is no tape, and longer than the header of one would be, by some";
  EXPECT_EQ(tape_reader::open(dir.file("text")).error().code, errc::not_a_pool);
  if (auto full = tape_writer::to_file("/dev/full", shape)) {
    write_some(**full, 5, 10);
    const auto ended = (*full)->finish();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, errc::full);
  }
}

// A tape of version 2 with two loads, the first of a pointer; its tag, op and version are replaced.
std::vector<std::byte> with_pointer(std::byte tag, std::byte op = std::byte(tape_op::load),
                                    std::byte version = std::byte{2}) {
  tape_options marking = shape;
  marking.mark_pointers = true;
  auto tape = tape_writer::to_memory(marking);
  tape->pointer_load(3, 1 << 15, 8);
  tape->event(tape_op::load, 3, 1 << 15, 8);
  EXPECT_TRUE(tape->finish());
  std::vector<std::byte> bytes(tape->memory().begin(), tape->memory().end());
  EXPECT_EQ(bytes[8], std::byte{2});
  bytes[8] = version;
  bytes[sizeof(tape_header)] = op;
  bytes[sizeof(tape_header) + 1] = tag;
  return bytes;
}

TEST(tape, marks_loads_of_pointers_in_version_2) {
  constexpr std::byte data{static_cast<std::uint8_t>(tape_tag::data)}, flag{tape_pointer_flag};
  const auto bytes = with_pointer(data | flag);
  auto reader = tape_reader::from_memory(bytes);
  ASSERT_TRUE(reader);
  const auto pointer = reader->next(), other = reader->next();
  ASSERT_TRUE(pointer && *pointer && other && *other);
  EXPECT_TRUE((*pointer)->loads_pointer);
  EXPECT_FALSE((*other)->loads_pointer);
  for (const auto& e : {pointer, other}) {
    EXPECT_EQ((*e)->op, tape_op::load);
    EXPECT_EQ((*e)->tag, tape_tag::data);
    EXPECT_EQ((*e)->thread, 3u);
    EXPECT_EQ((*e)->address, std::uint64_t{1} << 15);
    EXPECT_EQ((*e)->length, 8u);
  }
  EXPECT_FALSE(count_events(with_pointer(data | flag, std::byte(tape_op::load), std::byte{1})));
  EXPECT_FALSE(count_events(with_pointer(data | flag, std::byte(tape_op::store))));
  EXPECT_FALSE(count_events(with_pointer(std::byte{6} | flag)));
  EXPECT_TRUE(count_events(with_pointer(data)));
  auto plain = tape_writer::to_memory(shape);
  EXPECT_EQ(plain->memory()[8], std::byte{1});
}

TEST(tape, counts_the_threads_of_all_its_events) {
  tape_options marking = shape;
  marking.mark_pointers = true;
  auto tape = tape_writer::to_memory(marking);
  tape->event(tape_op::load, 2, 1 << 15, 8);
  tape->pointer_load(5, 1 << 15, 8);
  ASSERT_TRUE(tape->finish());
  EXPECT_EQ(tape_reader::from_memory(tape->memory())->header().threads, 6u);
}

TEST(tape, takes_turns) {
  auto tape = tape_writer::to_memory(shape);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 1000; ++i) {
          const tape_writer::scoped_lock lock(*tape);
          tape->event(tape_op::flush, t, 64, 64);
          tape->event(tape_op::fence, t, 0, 0);
        }
      });
  }
  ASSERT_TRUE(tape->finish());
  auto reader = tape_reader::from_memory(tape->memory());
  for (int i = 0; i < 4000; ++i) {
    const auto first = reader->next(), second = reader->next();
    ASSERT_TRUE(first && *first && second && *second);
    ASSERT_EQ((*first)->thread, (*second)->thread);
    ASSERT_EQ((*second)->op, tape_op::fence);
  }
}

}  // namespace
}  // namespace stele::media
