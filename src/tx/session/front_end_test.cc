// A front end's lock is held once and released once; its call before a close is made once.
#include <gtest/gtest.h>
#include <tx/session/front_end.h>

#include <optional>

namespace stele::detail {
namespace {

struct counted_lock final : front_end_lock {
  bool acquire() noexcept override {
    held += grants ? 1 : 0;
    return grants;
  }
  void release() noexcept override { --held; }
  bool grants = true;
  int held = 0;
};

TEST(front_end, without_a_lock_holds_nothing) {
  front_end none;
  front_end_hold hold = none.hold();
  hold.release();
}

TEST(front_end, its_lock_is_released_once_by_the_last_that_holds_it) {
  front_end python;
  counted_lock lock;
  python.set_lock(&lock);
  std::optional<front_end_hold> first(python.hold());
  EXPECT_EQ(lock.held, 1);
  {
    const front_end_hold moved = std::move(*first);
    first.reset();
    EXPECT_EQ(lock.held, 1);
  }
  EXPECT_EQ(lock.held, 0);
}

TEST(front_end, a_lock_that_is_refused_is_not_released) {
  front_end python;
  counted_lock lock;
  lock.grants = false;
  python.set_lock(&lock);
  python.hold().release();
  EXPECT_EQ(lock.held, 0);
}

TEST(front_end, is_called_once_before_a_close) {
  front_end debug;
  EXPECT_FALSE(debug.waits_for_close());
  int calls = 0;
  debug.before_close([&] { ++calls; });
  EXPECT_TRUE(debug.waits_for_close());
  debug.call_before_close();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(debug.waits_for_close());
}

}  // namespace
}  // namespace stele::detail
