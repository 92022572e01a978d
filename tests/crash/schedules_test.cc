// Schedules as a user runs them: a planted bug is found, its line replays it, and a run is the same
// every time. The sweeps are tests of their own (tests/CMakeLists.txt).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/conformance/command.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

struct run {
  int status;
  nlohmann::json found;
};

run schedules(const std::string& words) {
  const auto done = run_command("crash schedules " + words + " --json -");
  const auto begin = done.said.find("\n{");
  return {done.status, begin == std::string::npos
                           ? nlohmann::json()
                           : nlohmann::json::parse(done.said.substr(begin), nullptr, false)};
}

const std::string retire_paused =
    "--mechanism default --workload sps --sync-every 8 --each 2 --beside check --keys 2 --ops 2 "
    "--most 20000";

TEST(Schedules, a_planted_bug_is_found_and_its_line_repeats_it) {
  const run r = schedules(retire_paused + " --mutant retire_paused");
  EXPECT_EQ(r.status, 1);
  ASSERT_EQ(r.found.at("violations").size(), 1u);
  const std::string line = r.found["violations"][0]["line"],
                    what = r.found["violations"][0]["what"];
  for (int again = 0; again < 2; ++again) {
    const auto replayed = run_command(fmt::format("crash replay '{}'", line));
    EXPECT_EQ(replayed.status, 1);
    EXPECT_NE(replayed.said.find(what), std::string::npos) << replayed.said;
  }
}

TEST(Schedules, findings_that_no_file_takes_are_an_error) {
  for (const char* file : {"/dev/full", "/no/such/folder/file"}) {
    const auto done = run_command(fmt::format(
        "crash schedules --mechanism default --ops 2 --random 1 --most 1 --json {}", file));
    EXPECT_EQ(done.status, 2) << done.said;
    EXPECT_NE(done.said.find(fmt::format("cannot write {}: ", file)), std::string::npos)
        << done.said;
  }
}

TEST(Schedules, the_same_schedules_give_the_same_findings) {
  run runs[2];
  for (run& r : runs) {
    r = schedules(
        "--mechanism redo --workload churn --ops 12 --most 200 --random 100 --points stores");
    EXPECT_EQ(r.status, 0);
    ASSERT_TRUE(r.found.is_object());
    r.found.erase("seconds"), r.found.erase("judging_seconds");
  }
  EXPECT_EQ(runs[0].found, runs[1].found);
}

TEST(Schedules, all_with_one_preemption_are_made) {
  const run r =
      schedules("--mechanism undo --workload sps --ops 4 --each 1 --preemptions 1 --most 100000");
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.found.at("complete"), true);
  EXPECT_GT(r.found.at("schedules"), 40);
}

TEST(Schedules, a_line_that_makes_no_sense_is_refused_by_its_word) {
  for (const char* bad : {"what=ever", "each=0", "decisions=1:32", "points=some", "at=1"}) {
    const auto r = run_command(fmt::format("crash replay 'schedules redo/sps ops=3 {}'", bad));
    EXPECT_EQ(r.status, 2);
    EXPECT_NE(r.said.find(fmt::format("word 4 of the replay line, '{}'", bad)), std::string::npos)
        << r.said;
  }
}

}  // namespace
}  // namespace stele::testing
