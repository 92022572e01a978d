// A violation's line is complete: parsing it gives the same line, and replaying it the same
// violation.
#include <explore/mutant_table.h>
#include <explore/replay.h>
#include <gtest/gtest.h>

namespace stele::explore {
namespace {

TEST(Replay, a_line_survives_parsing) {
  replay_line l;
  l.run_plan.mechanism = "undo";
  l.run_plan.workload = "churn";
  l.run_plan.operations = 77;
  l.run_plan.threads = 2;
  l.run_plan.seed = 99;
  l.run_plan.coalesce = true;
  l.run_plan.reopen = "base";
  l.run_plan.created_for = "undo";
  l.run_plan.sync_every = 9;
  l.run_plan.mutant = base::mutant::undo_no_log_fence;
  l.crashes = {{12, {0, 3, 255}, 0}, {4, {}, 2}, {7, {1}, 3}};
  const std::string text = format_line(l);
  const auto parsed = parse_line(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(format_line(*parsed), text);
}

TEST(Replay, names_the_word_that_it_does_not_understand) {
  for (const char* bad : {"redo/sps ops=x", "redo/sps colour=red", "redo/sps at=1",
                          "redo/sps at=1:2.x", "redo/sps mutant=nonesuch", "redo"}) {
    const auto parsed = parse_line(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_NE(parsed.error().message.find("is not understood"), std::string::npos);
  }
}

TEST(Replay, refuses_a_choice_that_the_tape_does_not_have) {
  replay_line l;
  l.run_plan.operations = 3;
  l.crashes = {{1'000'000, {}, 0}};
  EXPECT_FALSE(replay(l));
  l.crashes = {{0, {1, 2, 3, 4, 5}, 0}};
  EXPECT_FALSE(replay(l));
}

// Violations in the run, in recovery, and in the operations after a recovery.
TEST(Replay, shows_the_violation_that_was_found) {
  for (const auto mutant : {base::mutant::redo_no_data_fence, base::mutant::recover_no_mark_fence,
                            base::mutant::recover_no_scrub}) {
    plan p;
    p.mechanism = mutant == base::mutant::redo_no_data_fence ? "redo" : "redo-async";
    p.mutant = mutant;
    p.threads = 2;
    settings s;
    s.bound = 128;
    const auto found = explore(p, s);
    ASSERT_TRUE(found);
    ASSERT_FALSE(found->violations.empty()) << explore::name_of(mutant);
    for (const violation& v : found->violations) {
      const auto line = parse_line(v.line);
      ASSERT_TRUE(line);
      const auto seen = replay(*line);
      ASSERT_TRUE(seen) << seen.error().message;
      EXPECT_FALSE(seen->problem.empty()) << v.line;
      EXPECT_NE(seen->explanation.find("crash before event"), std::string::npos);
      auto sound = *line;
      sound.run_plan.mutant = base::mutant::none;
      const auto healthy = replay(sound);
      EXPECT_TRUE(!healthy || healthy->problem.empty()) << v.line;
    }
  }
}

}  // namespace
}  // namespace stele::explore
