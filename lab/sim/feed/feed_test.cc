// Tapes by thread: no event is lost, whatever the threads' pace, and errors are reported.
#include <gtest/gtest.h>
#include <sim/feed/feed.h>

#include <base/rng.h>

namespace stele::sim {
namespace {

using media::tape_op;

// `events` loads; each goes to a random thread, its address is its number.
std::vector<std::byte> tape_of(std::uint64_t events, unsigned threads, bool end = true) {
  const auto tape = media::tape_writer::to_memory({});
  base::rng random(5);
  for (std::uint64_t n = 0; n < events; ++n)
    tape->event(tape_op::load, static_cast<unsigned>(n < threads ? n : random() % threads), n, 8);
  if (end) (void)tape->finish();
  const auto made = tape->memory();
  return {made.begin(), made.end()};
}

TEST(feed, gives_each_thread_its_events_in_their_order) {
  constexpr std::uint64_t events = 300'000;
  const auto tape = tape_of(events, 4);
  auto f = feed::over(tape, 16);
  ASSERT_TRUE(f);
  ASSERT_EQ(f->threads(), 4u);
  std::vector<bool> seen(events);
  std::vector<std::uint64_t> last(4);
  std::vector<bool> ended(4);
  base::rng random(1);
  for (unsigned left = 4; left != 0;) {
    const auto thread = static_cast<unsigned>(random() % 4);
    const auto items = f->next(thread);
    if (items.empty() && !ended[thread]) ended[thread] = true, --left;
    for (const tape_item& i : items) {
      EXPECT_FALSE(seen[i.record.address]);
      EXPECT_GE(i.record.address, last[thread]);
      EXPECT_EQ(i.record.thread, thread);
      seen[i.record.address] = true, last[thread] = i.record.address;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(events));
  EXPECT_EQ(f->events(), events);
}

// Also in a chunk that is read a second time, in the middle of an operation.
TEST(feed, gives_what_belongs_to_no_log_to_the_thread_of_the_operation) {
  constexpr std::uint64_t events = feed::chunk_events * (feed::max_chunks + 20);
  const auto tape = media::tape_writer::to_memory(
      {.pool_size = 1 << 16, .home_offset = 4096, .log_offset = 2048, .log_size = 1024});
  tape->event(tape_op::fence, 2, 0, 0);
  tape->event(tape_op::invoked, 1, 0, 0);
  for (std::uint64_t n = 0; n < events; ++n) tape->event(tape_op::fence, n % 2 == 0 ? 2 : 1, 0, 0);
  tape->event(tape_op::returned, 1, 0, 0);
  tape->event(tape_op::fence, 2, 0, 0);
  ASSERT_TRUE(tape->finish());
  auto f = feed::over(tape->memory(), 16);
  ASSERT_TRUE(f);
  const auto count = [&](unsigned thread) {
    std::size_t all = 0;
    for (auto items = f->next(thread); !items.empty(); items = f->next(thread)) all += items.size();
    return all;
  };
  EXPECT_EQ(count(0), 0u);
  EXPECT_EQ(count(1), events + 3);
  EXPECT_EQ(count(2), 1u) << "before the first operation";
}

// One thread runs to its end before another begins: more chunks lie between them than are kept.
TEST(feed, one_that_lags_behind_gets_what_was_dropped) {
  constexpr std::uint64_t events = feed::chunk_events * (feed::max_chunks + 20);
  const auto tape = tape_of(events, 2);
  auto f = feed::over(tape, 2);
  std::uint64_t count = 0, sum = 0;
  for (const unsigned thread : {0u, 1u})
    for (auto items = f->next(thread); !items.empty(); items = f->next(thread))
      for (const tape_item& i : items) ++count, sum += i.record.address;
  EXPECT_EQ(count, events);
  EXPECT_EQ(sum, events * (events - 1) / 2);
  EXPECT_EQ(f->events(), events);
}

// Event n is of thread n, for the first six.
TEST(feed, refuses_more_threads_than_there_may_be) {
  const auto tape = tape_of(1000, 6);
  const std::string sentence =
      "event 4 of the tape is of thread 4, and the machine has 4 hardware threads; give";
  auto f = feed::over(tape, 4), checked = feed::over(tape, 4), enough = feed::over(tape, 6);
  EXPECT_TRUE(f->next(0).empty());
  ASSERT_FALSE(f->status());
  EXPECT_EQ(f->status().error().message.find(sentence), 0u) << f->status().error().message;
  const auto before_a_run = checked->set_space({});
  ASSERT_FALSE(before_a_run);
  EXPECT_EQ(before_a_run.error().message.find(sentence), 0u) << before_a_run.error().message;
  EXPECT_TRUE(enough->set_space({}));
}

TEST(feed, refuses_more_threads_than_the_header_says) {
  auto tape = tape_of(1000, 6);
  tape[offsetof(media::tape_header, threads)] = std::byte{4};
  auto f = feed::over(tape, 8);
  ASSERT_TRUE(f);
  EXPECT_TRUE(f->next(0).empty());
  ASSERT_FALSE(f->status());
  EXPECT_EQ(f->status().error().code, errc::corrupt);
  EXPECT_EQ(f->status().error().message.find("event 4 of the tape is of thread 4, and its header "
                                             "says that it has 4 threads"),
            0u);
}

// Threads 0 and 1 have logs; thread 2 is what belongs to none, before and in an operation.
TEST(feed, needs_no_hardware_thread_for_what_belongs_to_no_log) {
  const auto tape = media::tape_writer::to_memory(
      {.pool_size = 1 << 16, .home_offset = 4096, .log_offset = 2048, .log_size = 1024});
  for (const auto& [op, thread] : {std::pair{tape_op::fence, 2u},
                                   {tape_op::invoked, 1u},
                                   {tape_op::fence, 2u},
                                   {tape_op::returned, 1u}})
    tape->event(op, thread, 0, 0);
  ASSERT_TRUE(tape->finish());
  auto f = feed::over(tape->memory(), 2);
  ASSERT_TRUE(f->set_space({}));
  EXPECT_EQ(f->next(0).size(), 1u);
  EXPECT_EQ(f->next(1).size(), 3u);
}

TEST(feed, says_that_a_tape_was_cut_off) {
  EXPECT_FALSE(feed::over(tape_of(100, 2, false), 4));
  auto cut = tape_of(100'000, 2);
  cut.resize(cut.size() - 40);
  auto f = feed::over(cut, 4);
  ASSERT_TRUE(f);
  while (!f->next(0).empty()) {
  }
  EXPECT_FALSE(f->status());
  EXPECT_TRUE(f->next(1).empty());
}

// --- accesses beyond a machine's memories ---

// One load, of the last line of `bytes`; a mark and a computation with arguments above all bytes.
std::unique_ptr<media::tape_writer> tape_up_to(std::uint64_t pool_size, std::uint64_t from,
                                               std::uint64_t bytes) {
  auto tape = media::tape_writer::to_memory({.pool_size = pool_size});
  tape->event(tape_op::invoked, 0, ~std::uint64_t{0}, 0);
  tape->event(tape_op::compute, 0, ~std::uint64_t{0}, 0);
  tape->event(tape_op::load, 0, from + bytes - 64, 64);
  EXPECT_TRUE(tape->finish());
  return tape;
}

constexpr address_space megabyte_and_half{1 << 20, 1 << 19};

result<> fits(const media::tape_writer& tape) {
  return feed::over(tape.memory(), 1)->set_space(megabyte_and_half);
}

TEST(feed, has_its_accesses_within_the_memories_before_a_run) {
  constexpr std::uint64_t mega = 1 << 20, at = media::tape_volatile_at;
  EXPECT_TRUE(fits(*tape_up_to(0, 0, mega)));
  EXPECT_TRUE(fits(*tape_up_to(0, at, mega / 2)));
  const auto nonvolatile = fits(*tape_up_to(0, 0, mega + 1)),
             other = fits(*tape_up_to(0, at, mega / 2 + 1));
  ASSERT_FALSE(nonvolatile);
  ASSERT_FALSE(other);
  EXPECT_EQ(nonvolatile.error().code, errc::invalid_argument);
  EXPECT_EQ(nonvolatile.error().message.find("the tape accesses 64 bytes at 0xfffc1, and "
                                             "nonvolatile_memory.capacity_bytes is 1048576; give"),
            0u)
      << nonvolatile.error().message;
  EXPECT_EQ(other.error().message.find("the tape accesses 64 bytes at 0x7ffc1, and "
                                       "volatile_memory.capacity_bytes is 524288; give"),
            0u)
      << other.error().message;
}

// The pool size is of the beginning; a pool may grow.
TEST(feed, ends_where_a_pool_has_grown_beyond_the_memory) {
  const auto tape = tape_up_to(4096, 0, (1 << 20) + 64);
  auto f = feed::over(tape->memory(), 1);
  ASSERT_TRUE(f->set_space(megabyte_and_half));
  EXPECT_TRUE(f->next(0).empty());
  ASSERT_FALSE(f->status());
  EXPECT_NE(f->status().error().message.find("at 0x100000"), std::string::npos);
}

// A pool of which only the beginning is used.
TEST(feed, may_have_a_pool_larger_than_the_memory) {
  const auto small = tape_up_to(1 << 21, 0, 4096), large = tape_up_to(1 << 21, 0, 1 << 21);
  auto f = feed::over(small->memory(), 1);
  ASSERT_TRUE(f->set_space(megabyte_and_half));
  EXPECT_EQ(f->next(0).size(), 3u) << "the tape is read from its beginning again";
  EXPECT_FALSE(fits(*large));
}

}  // namespace
}  // namespace stele::sim
