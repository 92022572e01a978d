// The queue of page copies: what an error leaves in it.
#include <gtest/gtest.h>
#include <stele/error.h>
#include <tx/page_queue.h>

#include <array>

namespace stele::detail {
namespace {

TEST(page_queue, keeps_nothing_of_a_drain_that_fails) {
  page_queue q(4);
  const std::array<std::byte, page_snapshot::page_size> page{};
  const auto push = [&](std::uint64_t n) { return q.try_push(page, n * page.size()); };
  for (std::uint64_t n = 0; n < 4; ++n) ASSERT_TRUE(push(n));
  EXPECT_FALSE(push(4)) << "it is full";
  std::vector<std::uint64_t> put;
  const auto drain = [&](std::size_t most) {
    put.clear();
    return q.drain([&](std::span<const std::byte>, std::uint64_t offset) -> result<> {
      put.push_back(offset / page.size());
      if (put.size() > most) return std::unexpected(error{errc::io, "no more"});
      return {};
    });
  };
  EXPECT_FALSE(drain(1));
  EXPECT_EQ(put, (std::vector<std::uint64_t>{0, 1}));
  for (std::uint64_t n = 5; n < 9; ++n)
    EXPECT_TRUE(push(n)) << n << ": its slot was not given back";
  EXPECT_TRUE(drain(9));
  EXPECT_EQ(put, (std::vector<std::uint64_t>{5, 6, 7, 8})) << "older copies came after newer ones";
}

}  // namespace
}  // namespace stele::detail
