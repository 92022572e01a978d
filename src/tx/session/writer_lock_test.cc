// One thread updates at a time; readers run beside it except while it blocks them.
#include <gtest/gtest.h>
#include <tx/session/writer_lock.h>

#include <thread>

namespace stele::detail {
namespace {

constexpr auto do_nothing = [] {};

TEST(writer_lock, a_second_writer_is_told_before_it_waits) {
  writer_lock lock;
  thread_context first, second;
  lock.lock(first, [] { FAIL() << "nobody holds it"; });
  EXPECT_TRUE(first.holds_writer);
  std::atomic<bool> waits{false};
  std::jthread other([&] {
    lock.lock(second, [&] { waits = true; });
    lock.unlock(second, do_nothing);
  });
  while (!waits) std::this_thread::yield();
  lock.unlock(first, do_nothing);
  other.join();
  EXPECT_FALSE(first.holds_writer || second.holds_writer);
}

TEST(writer_lock, the_only_writer_for_long_is_granted_the_bias_once) {
  writer_lock lock;
  thread_context v, other;
  unsigned granted = 0;
  const auto update = [&](thread_context& by) {
    lock.lock(by, do_nothing);
    lock.unlock(by, [&] { ++granted; });
  };
  for (unsigned i = 0; i < bias::threshold; ++i) update(v);
  EXPECT_EQ(granted, 0u);
  update(v);
  EXPECT_EQ(granted, 1u);
  update(v);
  EXPECT_EQ(granted, 1u) << "the streak begins again";
  for (unsigned i = 0; i < 2 * bias::threshold; ++i) update(i % 2 == 0 ? v : other);
  EXPECT_EQ(granted, 1u) << "they take turns";
}

TEST(writer_lock, a_reader_that_finds_readers_blocked_withdraws_until_they_are_not) {
  writer_lock lock;
  thread_context v;
  lock.begin_read(v);
  EXPECT_TRUE(v.reading);
  v.reading = false;
  lock.block_readers();
  std::atomic<bool> reads{false};
  std::jthread reader([&] {
    lock.begin_read(v);
    reads = true;
  });
  for (unsigned i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(reads);
  while (v.reading) std::this_thread::yield();  // as a writer waits
  lock.unblock_readers();
  reader.join();
  EXPECT_TRUE(v.reading);
}

}  // namespace
}  // namespace stele::detail
