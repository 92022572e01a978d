// An access buffer returns a sample of a thread's loads in their order, and loses the oldest first.
#include <gtest/gtest.h>
#include <published/archapt/access_buffer.h>

#include <utility>
#include <vector>

namespace stele::detail {
namespace {

std::vector<std::uint64_t> taken(access_buffer& b) {
  std::vector<std::uint64_t> all;
  (void)b.drain([&](std::uint64_t offset, std::uint64_t) { all.push_back(offset); });
  return all;
}

// A10
TEST(access_buffer, keeps_a_sample_in_order) {
  access_buffer b;
  for (std::uint64_t line = 0; line < 5 * access_buffer::sample_interval; ++line)
    b.load(64 * line, 8);
  const auto all = taken(b);
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_EQ(all[i] - all[i - 1], 64 * access_buffer::sample_interval);
  EXPECT_TRUE(taken(b).empty()) << "each is taken once";
}

TEST(access_buffer, samples_one_transaction_of_many) {
  access_buffer b;
  unsigned sampled = 0;
  for (unsigned i = 0; i < 10 * access_buffer::transactions_a_sample; ++i) {
    sampled += b.begin_transaction();
  }
  EXPECT_EQ(sampled, 10u);
}

TEST(access_buffer, counts_loads_of_a_line_in_a_row_once) {
  access_buffer b;
  for (std::uint64_t i = 0; i < 8 * access_buffer::sample_interval; ++i) b.load(64 + i % 64, 8);
  EXPECT_TRUE(taken(b).empty());
}

TEST(access_buffer, keeps_the_newest) {
  access_buffer b;
  constexpr std::uint64_t lines = 3 * access_buffer::capacity * access_buffer::sample_interval;
  for (std::uint64_t line = 0; line < lines; ++line) b.load(64 * line, 8);
  const auto all = taken(b);
  ASSERT_EQ(all.size(), access_buffer::capacity);
  EXPECT_EQ(all.back(), 64 * (lines - 1));
}

TEST(access_buffer, may_keep_every_load_with_its_size) {
  access_buffer b(access_buffer::keeps::every_load);
  using loads = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  const loads made = {{64, 8}, {64, 8}, {72, 8}, {128, 64}, {128, 1}};
  EXPECT_TRUE(b.begin_transaction());
  for (const auto& [offset, size] : made) b.load(offset, size);
  loads all;
  EXPECT_EQ(b.drain([&](auto offset, auto size) { all.emplace_back(offset, size); }), 0u);
  EXPECT_EQ(all, made);
}

TEST(access_buffer, tells_how_many_loads_were_lost) {
  access_buffer b(access_buffer::keeps::every_load);
  for (std::uint64_t i = 0; i < access_buffer::capacity_for_every_load + 3; ++i) b.load(8 * i, 8);
  std::uint64_t first = 0, count = 0;
  const auto lost = b.drain([&](auto offset, auto) { first = count++ == 0 ? offset : first; });
  EXPECT_EQ(lost, 3u);
  EXPECT_EQ(first, 24u);
  EXPECT_EQ(count, access_buffer::capacity_for_every_load);
}

}  // namespace
}  // namespace stele::detail
