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

double machine_write_times(const std::string& scheduler, double log_retention_s = 1e7) {
  tape_of_transactions tape(run_length, 1);
  machine_config m = machine_of("dp2");
  m.nonvolatile_memory.scheduler = scheduler;
  m.nonvolatile_memory.log_retention_s = log_retention_s;
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
}

}  // namespace
}  // namespace stele::sim
