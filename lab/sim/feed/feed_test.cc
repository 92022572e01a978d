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

TEST(feed, folds_more_threads_than_there_may_be) {
  const auto tape = tape_of(1000, 6);
  auto f = feed::over(tape, 4);
  ASSERT_EQ(f->threads(), 4u);
  std::uint64_t count = 0;
  for (unsigned t = 0; t < 4; ++t)
    for (auto items = f->next(t); !items.empty(); items = f->next(t)) count += items.size();
  EXPECT_EQ(count, 1000u);
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

}  // namespace
}  // namespace stele::sim
