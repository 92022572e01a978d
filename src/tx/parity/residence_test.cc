// The queue of columns used last, against one that is a plain list.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/parity/residence.h>

#include <algorithm>
#include <list>

namespace stele::detail {
namespace {

class plain_queue {
 public:
  explicit plain_queue(std::size_t capacity) : capacity_(capacity) {}
  void use(std::uint64_t column) {
    columns_.remove(column);
    columns_.push_back(column);
    if (columns_.size() > capacity_) columns_.pop_front();
  }
  bool holds(std::uint64_t column) const { return std::ranges::find(columns_, column) != columns_.end(); }

 private:
  std::size_t capacity_;
  std::list<std::uint64_t> columns_;
};

TEST(residence, holds_the_columns_used_last) {
  for (std::size_t capacity : {1u, 2u, 3u, 7u, 43u}) {
    base::rng random(capacity);
    residence queue(capacity);
    plain_queue plain(capacity);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t column = random.below(3) == 0 ? random.below(4) : random.below(3 * capacity + 1);
      queue.use(column);
      plain.use(column);
      ASSERT_LE(queue.size(), capacity);
      for (std::uint64_t c = 0; c < 3 * capacity + 5; c += 1 + capacity / 7) ASSERT_EQ(queue.holds(c), plain.holds(c)) << i;
    }
  }
}

TEST(residence, drops_the_oldest_of_one_more_than_it_holds) {
  residence queue(100);
  for (std::uint64_t c = 0; c < 101; ++c) queue.use(c * 1'000'003);
  EXPECT_FALSE(queue.holds(0));
  for (std::uint64_t c = 1; c < 101; ++c) EXPECT_TRUE(queue.holds(c * 1'000'003));
}

TEST(residence, keeps_one_that_is_used_again_and_again) {
  residence queue(10);
  for (std::uint64_t c = 1; c < 10'000; ++c) queue.use(0), queue.use(c);
  EXPECT_TRUE(queue.holds(0));
  EXPECT_EQ(queue.size(), 10u);
}

}  // namespace
}  // namespace stele::detail
