// The thread of a mechanism: steps, more work, memory that runs out, stopping.
#include <gtest/gtest.h>
#include <tx/background_thread.h>

namespace stele::detail {
namespace {

void await(const std::atomic<int>& counter, int value) {
  for (int now = counter; now < value; now = counter) counter.wait(now);
}

TEST(background_thread, does_a_step_for_each_wake) {
  std::atomic<int> steps{0};
  background_thread b;
  EXPECT_FALSE(b.runs());
  b.start([&] { ++steps, steps.notify_all(); }, [] { return false; });
  EXPECT_TRUE(b.runs());
  EXPECT_EQ(steps.load(), 0);
  for (int n = 1; n <= 3; ++n) {
    while (steps.load() < n) b.wake(), std::this_thread::yield();
    await(steps, n);
  }
  b.stop();
  EXPECT_FALSE(b.runs());
}

TEST(background_thread, goes_on_while_there_is_more_work) {
  std::atomic<int> steps{0};
  background_thread b;
  b.start([&] { ++steps, steps.notify_all(); }, [&] { return steps.load() < 5; });
  b.wake();
  await(steps, 5);
  b.stop();
  EXPECT_EQ(steps.load(), 5);
}

TEST(background_thread, goes_on_after_a_step_ran_out_of_memory) {
  std::atomic<int> steps{0};
  background_thread b;
  b.start(
      [&] {
        steps.notify_all();
        if (++steps == 1) throw std::bad_alloc();
      },
      [&] { return steps.load() < 2; });
  b.wake();
  await(steps, 2);
}

TEST(background_thread, sleeps_and_stops_without_work) {
  background_thread never_started;
  never_started.wake();
  never_started.stop();
  std::atomic<int> steps{0};
  {
    background_thread b;
    b.start([&] { ++steps; }, [] { return false; });
  }
  EXPECT_EQ(steps.load(), 0);
}

}  // namespace
}  // namespace stele::detail
