// The mutation score: every planted bug is found. A survivor means that the tests are blind in one eye.
#include <explore/mutants.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace stele::explore {
namespace {

TEST(Mutants, all_are_killed) {
  mutant_choice c;
  c.told = [](const mutant_outcome& o) { fmt::print("  {:24} {}\n", o.mutant.name, o.killed() ? o.what : "SURVIVED"); };
  const auto outcomes = explore_mutants(c);
  for (const mutant_outcome& o : outcomes) EXPECT_TRUE(o.killed()) << o.mutant.name << " survived " << o.states << " states";
  EXPECT_GE(outcomes.size(), 40u);
}

TEST(Mutants, every_part_has_its_share) {
  std::map<std::string_view, int> count;
  for (const base::mutant_entry& m : base::mutants) ++count[m.of];
  for (const char* part : {"log", "base", "redo", "redo-async", "undo", "recovery", "heap"})
    EXPECT_GE(count[part], 6) << part;
}

}  // namespace
}  // namespace stele::explore
