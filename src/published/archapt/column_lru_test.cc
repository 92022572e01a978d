// Tests the queue of the columns used last against a plain list.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <published/archapt/column_lru.h>

#include <algorithm>
#include <list>

namespace stele::detail {
namespace {

class plain_queue {
 public:
  explicit plain_queue(std::size_t capacity) : capacity_(capacity) {}
  void touch(std::uint64_t column) {
    columns_.remove(column);
    columns_.push_back(column);
    if (columns_.size() > capacity_) columns_.pop_front();
  }
  bool contains(std::uint64_t column) const {
    return std::ranges::find(columns_, column) != columns_.end();
  }

 private:
  std::size_t capacity_;
  std::list<std::uint64_t> columns_;
};

// A1
TEST(column_lru, holds_the_columns_used_last) {
  for (std::size_t capacity : {1u, 2u, 3u, 7u, 43u}) {
    base::rng random(capacity);
    column_lru queue(capacity);
    plain_queue plain(capacity);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t column =
          random.below(3) == 0 ? random.below(4) : random.below(3 * capacity + 1);
      queue.touch(column);
      plain.touch(column);
      ASSERT_LE(queue.size(), capacity);
      for (std::uint64_t c = 0; c < 3 * capacity + 5; c += 1 + capacity / 7)
        ASSERT_EQ(queue.contains(c), plain.contains(c)) << i;
    }
  }
}

TEST(column_lru, drops_the_oldest_of_one_more_than_it_holds) {
  column_lru queue(100);
  for (std::uint64_t c = 0; c < 101; ++c) queue.touch(c * 1'000'003);
  EXPECT_FALSE(queue.contains(0));
  for (std::uint64_t c = 1; c < 101; ++c) EXPECT_TRUE(queue.contains(c * 1'000'003));
}

TEST(column_lru, keeps_one_that_is_used_again_and_again) {
  column_lru queue(10);
  for (std::uint64_t c = 1; c < 10'000; ++c) queue.touch(0), queue.touch(c);
  EXPECT_TRUE(queue.contains(0));
  EXPECT_EQ(queue.size(), 10u);
}

}  // namespace
}  // namespace stele::detail
