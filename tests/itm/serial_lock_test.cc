// The serial lock in a child of fork, from states in which the parent's threads may have been.
#include <adapters/itm/serial_lock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace stele::testing::itm {
namespace {

using stele::itm::serial_lock;

// A thread that the child lacks had announced itself and was not counted yet.
TEST(itm_serial_lock, counts_announced_threads_right_after_a_fork) {
  serial_lock lock;
  auto& left = lock.register_thread();
  lock.register_thread().announced = true;
  lock.reset_after_fork(&left);

  auto& another = lock.register_thread();
  for (auto* const m : {&left, &another}) {
    lock.enter(*m);
    lock.announce_outside_access(*m);
    if (m == &left) lock.leave(*m);
  }
  std::atomic<bool> waited{false};
  std::jthread committer([&] {
    lock.wait_for_older(left, 5);
    waited = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(waited) << "a commit passed a block that is older and reads ordinary memory";
  lock.leave(another);
  committer.join();
  EXPECT_TRUE(waited);
}

}  // namespace
}  // namespace stele::testing::itm
