// The DP2 memory with a tape's logs: the gain of each rule on a transaction's writes, in whole
// write times.
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/pcm.h>
#include <sim/dp2/tape_of_transactions.h>
#include <sim/feed/write_replay.h>

namespace stele::sim {
namespace {

double write_times(const std::string& scheduler, unsigned count, double log_retention_s = 1e7) {
  tape_of_transactions tape(count);
  auto reader = media::tape_reader::from_memory(tape.bytes());
  event_queue time;
  auto memory = make_dp2_memory(time, dp2_memory(scheduler, log_retention_s), reader->header());
  EXPECT_TRUE(memory) << memory.error().message;
  write_trace trace(std::move(*reader));
  const auto done = replay_writes(trace, time, **memory);
  EXPECT_TRUE(done);
  EXPECT_EQ(done->writes, 4 * count);
  return static_cast<double>(done->finished) / from_ns(1425);
}

TEST(dp2_memory, strict_order_takes_four_write_times_a_transaction) {
  EXPECT_NEAR(write_times("strict", 20), 80, 1);
}

TEST(dp2_memory, records_of_the_other_slot_take_no_time_of_their_own_by_rule_1) {
  EXPECT_NEAR(write_times("rule1", 20), 61, 1);
  EXPECT_NEAR(write_times("rules", 20), 61, 1);
}

TEST(dp2_memory, rule_2_gains_nothing_where_a_commit_line_follows_its_own_records) {
  EXPECT_NEAR(write_times("rule2", 20), 80, 1);
}

TEST(dp2_memory, a_shorter_retention_speeds_up_the_logs_three_writes_of_four) {
  EXPECT_NEAR(write_times("strict", 20, 1e4), 20 * (3 / 1.7 + 1), 1);
}

TEST(dp2_memory, is_what_its_file_says) {
  memory_config file = machine_of("dp2").nonvolatile_memory;
  const memory_config here = dp2_memory(file.scheduler, file.log_retention_s);
  file.capacity_bytes = here.capacity_bytes;  // a value of the machine, not of the paper
  machine_config a, b;
  a.nonvolatile_memory = file, b.nonvolatile_memory = here;
  EXPECT_EQ(toml_of(a), toml_of(b));
}

TEST(dp2_memory, refuses_what_it_does_not_know) {
  event_queue time;
  media::tape_header h{};
  EXPECT_FALSE(make_dp2_memory(time, dp2_memory("nonesuch"), h));
  EXPECT_FALSE(make_dp2_memory(time, dp2_memory("strict", 5), h));
}

}  // namespace
}  // namespace stele::sim
