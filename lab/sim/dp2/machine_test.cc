// The machine of DP2 and a tape with logs and fences: its fences are barriers and its logs are
// known to the controller, so a run takes as many write times as the controller alone
// (pcm_test.cc).
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/tape_of_transactions.h>
#include <sim/simulation.h>

namespace stele::sim {
namespace {

constexpr unsigned run_length = 200;

double machine_write_times(const std::string& scheduler, double log_retention_s = 1e7,
                           const std::string& truncation_retention = "log",
                           bool barriers_wait = false) {
  tape_of_transactions tape(run_length, 1);
  machine_config m = machine_of("dp2");
  m.nonvolatile_memory.scheduler = scheduler;
  m.nonvolatile_memory.log_retention_s = log_retention_s;
  m.nonvolatile_memory.truncation_retention = truncation_retention;
  m.design.barriers_wait = barriers_wait;
  auto s = simulation::make(m, std::move(*feed::over(tape.bytes(), 12)), {});
  EXPECT_TRUE(s) << s.error().message;
  while ((*s)->advance(1 << 16)) {
  }
  EXPECT_TRUE((*s)->finish());
  EXPECT_EQ((*s)->threads[0]->counts.operations, run_length);
  EXPECT_EQ((*s)->memories->nonvolatile->statistics(0).writes, 4 * run_length);
  return static_cast<double>((*s)->threads[0]->time()) / from_ns(1425);
}

TEST(dp2_machine, strict_order_takes_four_write_times_a_transaction) {
  EXPECT_NEAR(machine_write_times("strict"), 4 * run_length, 2);
}

TEST(dp2_machine, a_rule_saves_what_it_saves_at_the_controller) {
  EXPECT_NEAR(machine_write_times("rule1"), 3 * run_length, 3);
  EXPECT_NEAR(machine_write_times("rules"), 3 * run_length, 3);
  EXPECT_NEAR(machine_write_times("rule2"), 4 * run_length, 2);
  EXPECT_LT(machine_write_times("ideal"), 3 * run_length);
}

TEST(dp2_machine, a_shorter_retention_speeds_up_the_logs_three_writes_of_four) {
  EXPECT_NEAR(machine_write_times("strict", 1e4), run_length * (3 / 1.7 + 1), 2);
  EXPECT_NEAR(machine_write_times("strict", 1e4, "data"), run_length * (2 / 1.7 + 2), 2);
}

// A thread that waits at a barrier has sent nothing that could pass it.
TEST(dp2_machine, no_rule_saves_one_thread_time_where_barriers_wait) {
  EXPECT_FALSE(machine_of("dp2").design.barriers_wait);
  const double strict = machine_write_times("strict", 1e7, "log", true);
  EXPECT_GT(strict, 4 * run_length);
  EXPECT_LT(strict, 4.5 * run_length) << "the caches' time, in which no write is in progress";
  for (const char* scheduler : {"rule1", "rule2", "rules", "ideal"})
    EXPECT_EQ(machine_write_times(scheduler, 1e7, "log", true), strict) << scheduler;
  EXPECT_NEAR(strict - machine_write_times("rules", 1e4, "log", true),
              run_length * 3 * (1 - 1 / 1.7), 2);
}

}  // namespace
}  // namespace stele::sim
