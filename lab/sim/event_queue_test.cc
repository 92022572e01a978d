// The order of events in time, and of events at the same time.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/event_queue.h>

#include <algorithm>

namespace stele::sim {
namespace {

struct listener final : event_handler {
  std::vector<std::pair<picoseconds, std::uint64_t>> heard;
  void handle(picoseconds now, std::uint64_t what) override { heard.emplace_back(now, what); }
};

TEST(event_queue, orders_by_time_then_by_asking) {
  event_queue q;
  listener l;
  q.schedule(20, l, 1);
  q.schedule(10, l, 2);
  q.schedule(20, l, 3);
  q.schedule(10, l, 4);
  EXPECT_EQ(q.next(), 10u);
  while (!q.empty()) q.step();
  const std::vector<std::pair<picoseconds, std::uint64_t>> expected = {
      {10, 2}, {10, 4}, {20, 1}, {20, 3}};
  EXPECT_EQ(l.heard, expected);
  EXPECT_EQ(q.now(), 20u);
  EXPECT_EQ(q.next(), never);
}

// Goes on until it is told not to; hears the times that it has gone to.
struct goer final : event_handler {
  explicit goer(event_queue& queue) : q(queue) {}
  event_queue& q;
  std::vector<picoseconds> heard;
  void handle(picoseconds now, std::uint64_t) override {
    do heard.push_back(q.now());
    while (q.go_on_to(now += 10));
    q.schedule(now, *this);
  }
};

TEST(event_queue, a_handler_goes_on_until_the_next_event_or_what_its_step_allows) {
  event_queue q;
  goer g(q);
  listener l;
  q.schedule(10, g);
  q.schedule(40, l);
  q.step();
  EXPECT_EQ(g.heard, (std::vector<picoseconds>{10})) << "a step alone allows nothing";
  q.step(never);
  EXPECT_EQ(g.heard, (std::vector<picoseconds>{10, 20, 30})) << "the event at 40 comes first";
  EXPECT_EQ(q.next(), 40u);
  q.step(never);
  EXPECT_EQ(l.heard.size(), 1u);
  q.step(60);
  EXPECT_EQ(g.heard, (std::vector<picoseconds>{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(q.next(), 70u);
}

// Schedules more events from a handler, for now, for near times and for far ones.
struct scheduler_of_events final : event_handler {
  explicit scheduler_of_events(event_queue& queue) : q(queue) {}
  event_queue& q;
  base::rng random{7};
  std::uint64_t scheduled = 0;
  std::vector<std::pair<picoseconds, std::uint64_t>> expected, heard;

  void schedule(picoseconds when) {
    q.schedule(when, *this, scheduled);
    expected.emplace_back(when, scheduled++);
  }
  void handle(picoseconds now, std::uint64_t what) override {
    heard.emplace_back(now, what);
    constexpr picoseconds spans[] = {1, 3, 1'000, 2'000, 50'000, 520'000, 530'000, 3'000'000};
    for (unsigned more = 0; more < 2 && scheduled < 20'000; ++more)
      schedule(now + random() % spans[random() % 8]);
  }
};

TEST(event_queue, near_and_far_events_come_in_one_order) {
  event_queue q;
  scheduler_of_events s(q);
  s.schedule(600'000);
  while (!q.empty()) {
    const picoseconds next = q.next();
    q.step();
    ASSERT_EQ(q.now(), next);
  }
  std::ranges::stable_sort(s.expected);
  EXPECT_EQ(s.heard, s.expected);
}

// Equal times: one event was far when it was scheduled, the other is near.
TEST(event_queue, an_event_that_was_far_comes_before_a_later_one_for_its_time) {
  event_queue q;
  listener l;
  q.schedule(600'000, l, 1);
  q.schedule(599'000, l, 2);
  q.step();
  q.schedule(600'000, l, 3);
  while (!q.empty()) q.step();
  const std::vector<std::pair<picoseconds, std::uint64_t>> expected = {
      {599'000, 2}, {600'000, 1}, {600'000, 3}};
  EXPECT_EQ(l.heard, expected);
}

// The wheel turns: an event of the next turn is in a slot before now's, in the same word.
TEST(event_queue, an_event_of_the_next_turn_waits_for_its_time) {
  event_queue q;
  listener l;
  q.schedule(40'000, l, 1);
  q.step();
  q.schedule(40'000 + 520'000, l, 2);
  EXPECT_EQ(q.next(), 560'000u);
  q.schedule(300'000, l, 3);
  EXPECT_EQ(q.next(), 300'000u);
  q.step();
  EXPECT_EQ(q.next(), 560'000u);
  q.step();
  EXPECT_EQ(q.next(), never);
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(l.heard.back().second, 2u);
}

}  // namespace
}  // namespace stele::sim
