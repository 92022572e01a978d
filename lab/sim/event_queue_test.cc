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

}  // namespace
}  // namespace stele::sim
