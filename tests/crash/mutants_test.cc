// The mutation score: every planted bug must be found. A survivor shows a gap in the tests.
#include <explore/mutants.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stele::explore {
namespace {

TEST(Mutants, all_are_killed) {
  mutant_selection c;
  c.on_outcome = [](const mutant_outcome& o) {
    fmt::print("  {:24} {:10} {}\n", o.mutant.name, o.mechanism, o.killed() ? o.what : "SURVIVED");
  };
  const auto outcomes = explore_mutants(c);
  for (const mutant_outcome& o : outcomes)
    EXPECT_TRUE(o.killed()) << o.mutant.name << " in " << o.mechanism << " survived " << o.states
                            << " states";
  EXPECT_GE(outcomes.size(), 40u);
}

TEST(Mutants, every_part_has_its_share) {
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
