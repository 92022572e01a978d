// The mutation score: every planted bug must be found. A survivor shows a gap in the tests.
#include <explore/mutants.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stele::explore {
namespace {

// In shares, which run beside each other.
class Mutants : public ::testing::TestWithParam<std::size_t> {
 public:
  static constexpr std::size_t shares = 8;
};
INSTANTIATE_TEST_SUITE_P(share, Mutants, ::testing::Range(std::size_t{0}, Mutants::shares));

// A5
TEST_P(Mutants, are_all_killed) {
  mutant_selection c;
  c.share = GetParam(), c.shares = shares;
  c.on_outcome = [](const mutant_outcome& o) {
    fmt::print("  {:24} {:10} {}\n", o.mutant.name, o.mechanism, o.killed() ? o.what : "SURVIVED");
  };
  const auto outcomes = explore_mutants(c);
  for (const mutant_outcome& o : outcomes)
    EXPECT_TRUE(o.killed()) << o.mutant.name << " in " << o.mechanism << " survived " << o.states
                            << " states";
  EXPECT_GE(outcomes.size(), 15u);
}

TEST(MutantTable, every_part_has_its_share) {
  for (const char* part :
       {"log", "base", "redo", "redo-async", "undo", "xil", "vcbp", "blurred", "adaptive",
        "default", "archapt-undo", "archapt-redo", "recovery", "heap"}) {
    int count = 0;
    for (const explore::mutant_entry& m : explore::mutants)
      count += fmt::format(",{},", m.of).find(fmt::format(",{},", part)) != std::string::npos;
    EXPECT_GE(count, 6) << part;
  }
}

}  // namespace
}  // namespace stele::explore
