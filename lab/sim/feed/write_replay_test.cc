// Replays a trace into a memory: every write once, in the memory's time; the observer can end the
// replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sim/feed/write_replay.h>

namespace stele::sim {
namespace {

using media::tape_op;
using testing::ElementsAre;

constexpr media::tape_options shape{
    .pool_size = 1 << 16, .home_offset = 2 * 4096, .log_offset = 4096, .log_size = 4096};

// One write at a time, 10 ps each.
class one_at_a_time final : public memory {
 public:
  explicit one_at_a_time(event_queue& time) : time_(time) {}
  void submit(picoseconds now, const request& r) override {
    busy_until_ = std::max(busy_until_, now) + 10;
    time_.schedule(busy_until_, *r.reply_to, r.token);
  }
  void barrier(picoseconds, std::uint16_t) override { ++barriers; }
  std::size_t outstanding() const noexcept override { return 0; }
  int barriers = 0;

 private:
  event_queue& time_;
  picoseconds busy_until_ = 0;
};

struct watching final : persist_observer {
  std::vector<std::uint64_t> lines;
  std::size_t most = ~std::size_t{0};
  bool persisted(const trace_step& s, picoseconds) override {
    return lines.push_back(s.address / 64), lines.size() < most;
  }
};

std::unique_ptr<media::tape_writer> four_lines() {
  auto tape = media::tape_writer::to_memory(shape);
  {
    const media::tape_writer::scoped_lock lock(*tape);
    tape->event(tape_op::flush, 0, shape.home_offset, 128);
    tape->event(tape_op::fence, 0, 0, 0);
    tape->event(tape_op::flush, 0, shape.home_offset + 128, 128);
    tape->event(tape_op::fence, 0, 0, 0);
  }
  EXPECT_TRUE(tape->finish());
  return tape;
}

TEST(write_replay, takes_as_long_as_the_memory) {
  const auto tape = four_lines();
  for (const std::size_t most : {1u, 3u, 100u}) {
    write_trace trace(std::move(*media::tape_reader::from_memory(tape->memory())));
    event_queue time;
    one_at_a_time to(time);
    watching w;
    const auto done = replay_writes(trace, time, to, &w, most);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->writes, 4u);
    EXPECT_EQ(done->barriers, 2u);
    EXPECT_EQ(to.barriers, 2);
    EXPECT_EQ(done->finished, 40u);
    EXPECT_DOUBLE_EQ(done->bytes_per_s(), 256 / 40e-12);
    EXPECT_THAT(w.lines, ElementsAre(128, 129, 130, 131));
  }
}

TEST(write_replay, ends_when_it_is_told_to) {
  const auto tape = four_lines();
  write_trace trace(std::move(*media::tape_reader::from_memory(tape->memory())));
  event_queue time;
  one_at_a_time to(time);
  watching w;
  w.most = 2;
  const auto done = replay_writes(trace, time, to, &w);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->stopped);
  EXPECT_EQ(done->writes, 2u);
}

}  // namespace
}  // namespace stele::sim
