// The write set finds what was added to it, and nothing else.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/write_set.h>

#include <set>

namespace stele::detail {
namespace {

TEST(write_set, finds_what_was_added_and_nothing_else) {
  write_set set;
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(set.empty());
    std::set<std::uint64_t> lines;
    base::rng random(static_cast<std::uint64_t>(round));
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t line = random.below(2000) * line_size;
      written_line* const found = set.find(line);
      ASSERT_EQ(found != nullptr, lines.contains(line));
      if (found != nullptr) {
        ASSERT_EQ(found->offset, line);
        continue;
      }
      if (i % 2 == 0 || set.full()) {
        ASSERT_EQ(set.add(line).mask, 0u) << "a fresh line has something stored";
      } else {
        set.add_word(line, 3, line);
        ASSERT_EQ(set.last().mask, 0xFF00'0000u);
        ASSERT_EQ(set.last().words[3], line);
      }
      lines.insert(line);
    }
    EXPECT_EQ(set.lines().size(), lines.size());
    set.clear();
    for (const std::uint64_t line : lines) ASSERT_EQ(set.find(line), nullptr);
  }
}

}  // namespace
}  // namespace stele::detail
