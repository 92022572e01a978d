// A set of lines against a map, with more lines than it begins with, cleared often.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/core/line_set.h>

#include <map>

namespace stele::sim {
namespace {

TEST(line_set, has_the_flags_that_a_map_has) {
  line_set set;
  base::rng random{1};
  for (unsigned round = 0; round < 200; ++round) {
    std::map<std::uint64_t, std::uint8_t> expected;
    const std::uint64_t lines = 1 + random.below(400);
    for (unsigned n = 0; n < 300; ++n) {
      const std::uint64_t line = random.below(lines) << random.below(3) * 20;
      const auto flags = static_cast<std::uint8_t>(1 + random.below(3));
      if (random.below(4) == 0) {
        set.remove_flags(line, flags);
        if (const auto known = expected.find(line); known != expected.end())
          known->second &= static_cast<std::uint8_t>(~flags);
      } else {
        EXPECT_EQ(set.add(line, flags), expected[line]) << "line " << line;
        expected[line] |= flags;
      }
    }
    EXPECT_EQ(set.entries().size(), expected.size());
    for (const line_set::entry& e : set.entries()) EXPECT_EQ(e.flags, expected.at(e.line));
    for (std::uint64_t line = 0; line < 1000; ++line) {
      const auto known = expected.find(line);
      EXPECT_EQ(set.flags(line), known == expected.end() ? 0 : known->second) << "line " << line;
    }
    set.clear();
    EXPECT_TRUE(set.entries().empty());
    EXPECT_EQ(set.flags(0), 0);
  }
}

}  // namespace
}  // namespace stele::sim
