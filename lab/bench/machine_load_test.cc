// The machine's load: texts of the system's files, what is this process' own, and when a figure
// is called disturbed.
#include <bench/machine_load.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stele::bench {
namespace {

using testing::HasSubstr;

// Ticks: user, nice, system, idle, iowait, irq, softirq, steal.
std::optional<load_sample> sample(double average, int running, const char* ticks) {
  return parse_load(
      std::to_string(average) + " 3.51 3.12 " + std::to_string(running) + "/89 25942\n",
      std::string("cpu  ") + ticks + " 0 0\ncpu0 1 2 3\n");
}

TEST(machine_load, is_read_from_the_files_of_the_system) {
  const auto s = sample(4.98, 3, "100 20 30 900 50 1 4 7");
  ASSERT_TRUE(s);
  EXPECT_NEAR(s->average, 4.98, 1e-9);
  EXPECT_EQ(s->runnable, 2) << "without the thread that reads";
  EXPECT_EQ(s->busy, 155);
  EXPECT_EQ(s->idle, 950);
  EXPECT_EQ(s->steal, 7);
  EXPECT_FALSE(parse_load("", "cpu 1 2 3 4 5 6 7 8"));
  EXPECT_FALSE(parse_load("1 2 3 4/5 6", "cpu 1 2"));
  EXPECT_FALSE(parse_load("1 2 3 4/5 6", "intr 1 2 3 4 5 6 7 8"));
}

// Of 1000 ticks 600 were busy, 500 of these this process'; 20 were stolen.
TEST(machine_load, does_not_count_this_process) {
  auto before = sample(0.5, 1, "100 0 0 900 0 0 0 0"),
       after = sample(2, 2, "700 0 0 1280 0 0 0 20");
  ASSERT_TRUE(before && after);
  before->own = 50, after->own = 550;
  const machine_load l = load_between(*before, *after, 2);
  EXPECT_DOUBLE_EQ(l.busy, 0.1);
  EXPECT_DOUBLE_EQ(l.steal, 0.02);
  EXPECT_DOUBLE_EQ(l.runnable, 0.25) << "one thread at one end, of two cores";
  EXPECT_FALSE(l.disturbed());
  EXPECT_THAT(words_of(l), HasSubstr("0.25 runnable threads a core, 10 % of the cores' time, 2.0 % "
                                     "stolen; load 0.50 before, 2.00 after"));
  after->own = 1000;  // children were counted late
  EXPECT_EQ(load_between(*before, *after, 2).busy, 0);
}

TEST(machine_load, is_disturbed_by_half_a_core_of_others_on_each_core) {
  machine_load l;
  l.busy = 0.5, l.runnable = 0.5;
  EXPECT_FALSE(l.disturbed());
  EXPECT_THAT(words_of(l), testing::Not(HasSubstr("DISTURBED")));
  l.runnable = 0.51;
  EXPECT_TRUE(l.disturbed());
  EXPECT_THAT(words_of(l), HasSubstr("DISTURBED"));
  EXPECT_EQ(json_of(l)["disturbed"], true);
  l.runnable = 0, l.busy = 0.51;
  EXPECT_TRUE(l.disturbed());
}

TEST(machine_load, of_this_machine_is_told) {
  const load_meter meter;
  const auto l = meter.since();
  ASSERT_TRUE(l) << "/proc is not mounted";
  EXPECT_GE(l->runnable, 0);
  EXPECT_LE(l->busy + l->steal, 1);
}

}  // namespace
}  // namespace stele::bench
