// Lines of rings that are reserved and released.
#include <gtest/gtest.h>
#include <tx/log/log_reservations.h>

namespace stele::detail {
namespace {

TEST(log_reservations, sums_up_what_owners_hold_in_a_ring) {
  log_reservations r(3);
  r.reserve(0, 2, 10);
  r.reserve(1, 2, 5);
  r.reserve(2, 1, 7);
  EXPECT_EQ(r.lines_in(0), 0u);
  EXPECT_EQ(r.lines_in(1), 7u);
  EXPECT_EQ(r.lines_in(2), 15u);
  EXPECT_EQ(r.release(0), 2u);
  EXPECT_EQ(r.lines_in(2), 5u);
}

TEST(log_reservations, are_released_once) {
  log_reservations r(2);
  r.reserve(1, 0, 4);
  EXPECT_EQ(r.release(1), 0u);
  EXPECT_EQ(r.release(1), 0u);
  EXPECT_EQ(r.lines_in(0), 0u);
  r.reserve(1, 1, 3);
  EXPECT_EQ(r.lines_in(1), 3u);
}

}  // namespace
}  // namespace stele::detail
