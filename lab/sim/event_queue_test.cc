// The order of events in time, and of events at the same time.
#include <gtest/gtest.h>
#include <sim/event_queue.h>

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

}  // namespace
}  // namespace stele::sim
