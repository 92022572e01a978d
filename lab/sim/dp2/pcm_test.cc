// The DP2 memory with a tape's logs: the gain of each rule on a transaction's writes, in whole
// write times.
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/pcm.h>
#include <sim/dp2/tape_of_transactions.h>
#include <sim/feed/write_replay.h>
#include <sim/memory_result.h>

namespace stele::sim {
namespace {

double write_times(const std::string& scheduler, unsigned count, double log_retention_s = 1e7,
                   bool commit_lines = true, const std::string& truncation_retention = "log") {
  tape_of_transactions tape(count, 0, commit_lines);
  auto reader = media::tape_reader::from_memory(tape.bytes());
  event_queue time;
  memory_config c = dp2_memory(scheduler, log_retention_s);
  c.truncation_retention = truncation_retention;
  auto memory = make_dp2_memory(time, c, reader->header());
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

// With a rule 1 that hides the records, a commit line and a truncation remain of the log's writes.
TEST(dp2_memory, truncations_take_the_time_of_the_retention_that_they_get) {
  EXPECT_EQ(machine_of("dp2").nonvolatile_memory.truncation_retention, "log");
  EXPECT_NEAR(write_times("strict", 20, 1e4, true, "data"), 20 * (2 / 1.7 + 2), 1);
  EXPECT_NEAR(write_times("rule1", 20, 1e4, true, "log"), 20 * (2 / 1.7 + 1), 1);
  EXPECT_NEAR(write_times("rule1", 20, 1e4, true, "data"), 20 * (1 / 1.7 + 2), 1);
  EXPECT_NEAR(write_times("strict", 20, 1e7, true, "data"), 80, 1);
}

TEST(dp2_memory, a_truncation_is_told_from_a_commit_without_barriers_too) {
  memory_config c = dp2_memory("ideal", 1e4);
  c.truncation_retention = "data";
  memory_fixture bed(c);
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  std::vector<picoseconds> took;
  for (const std::uint64_t address : {0, 4096, 4096}) {
    const picoseconds from = bed.events.now();
    const unsigned token = bed.submit(access::write, address);
    bed.run();
    took.push_back(bed.completed[token] - from);
  }
  EXPECT_EQ(took, (std::vector<picoseconds>{838'235, 838'235, 1'425'000}));
}

// D2, D4. Nothing tells which line of such a log commits, so none passes a barrier; all of them are
// kept as logs.
TEST(dp2_memory, a_log_without_commit_lines_is_ordered_as_data_and_kept_as_a_log) {
  for (const char* scheduler : {"strict", "rule1", "rule2", "rules"}) {
    EXPECT_NEAR(write_times(scheduler, 20, 1e7, false), 80, 1) << scheduler;
    EXPECT_NEAR(write_times(scheduler, 20, 1e4, false), 20 * (3 / 1.7 + 1), 1) << scheduler;
  }
}

// --- retention ---

// D5. A crash after each write of a run, and power that returns within the retention of logs, and
// a second after it. Returns how many crashes had lines to rely on, and how many of them recovery
// was told not to rely on.
struct trust final : persist_observer {
  memory_system* memory = nullptr;
  unsigned crashes = 0, refused = 0;
  bool persisted(const trace_step&, picoseconds now) override {
    constexpr picoseconds retention = 10'000'000'000'000'000, second = 1'000'000'000'000;
    const auto within = memory->trusted_logs(now + second);
    EXPECT_TRUE(within) << within.error().message;
    if (!within || *within == 0) return true;
    ++crashes;
    const auto after = memory->trusted_logs(now + retention + second);
    if (after) return true;
    ++refused;
    EXPECT_EQ(after.error().code, errc::corrupt);
    EXPECT_NE(after.error().message.find("ago and lasts 10000 s; truncate sooner or write"),
              std::string::npos)
        << after.error().message;
    return true;
  }
};

trust crashes_of(controller_mutant mutant) {
  tape_of_transactions tape(20);
  auto reader = media::tape_reader::from_memory(tape.bytes());
  event_queue time;
  auto memory = make_memory(time, dp2_memory("rules", 1e4), mutant);
  EXPECT_TRUE((*memory)->set_ranges(*log_ranges_of(reader->header())));
  trust watcher;
  watcher.memory = memory->get();
  write_trace trace(std::move(*reader));
  EXPECT_TRUE(replay_writes(trace, time, **memory, &watcher));
  return watcher;
}

TEST(dp2_memory, refuses_to_recover_from_logs_after_their_retention) {
  const trust right = crashes_of(controller_mutant::none);
  EXPECT_GT(right.crashes, 70u);
  EXPECT_EQ(right.refused, right.crashes);
  const trust wrong = crashes_of(controller_mutant::expired_logs_trusted);
  EXPECT_EQ(wrong.crashes, right.crashes);
  EXPECT_EQ(wrong.refused, 0u) << "the planted bug trusts them";
}

// Records of an old transaction in the same slot count no more; the commit line does.
TEST(dp2_memory, relies_on_the_records_of_the_last_commit_only) {
  memory_fixture bed(dp2_memory("strict", 1e4));
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  const auto write = [&](std::uint64_t address) {
    bed.submit(access::write, address);
    bed.barrier();
    bed.run();
  };
  constexpr picoseconds second = 1'000'000'000'000;
  EXPECT_EQ(*bed.memory->trusted_logs(never - 1), 0u);
  for (const std::uint64_t address : {0, 64, 4096}) write(address);
  EXPECT_EQ(*bed.memory->trusted_logs(second), 3u);
  write(4096);  // the truncation
  EXPECT_EQ(*bed.memory->trusted_logs(second), 1u);
  bed.run_until(20'000 * second);
  for (const std::uint64_t address : {0, 4096}) write(address);
  EXPECT_EQ(*bed.memory->trusted_logs(29'999 * second), 2u) << "the line at 64 has expired";
  write(128);
  EXPECT_EQ(*bed.memory->trusted_logs(29'999 * second), 2u) << "the line at 128 is not committed";
  const auto late = bed.memory->trusted_logs(30'002 * second);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message.find("memory: the line at 0 of a log was written"), 0u);
}

// An idle log ends with its truncation, whose retention says how long the log can be read.
TEST(dp2_memory, relies_on_a_truncation_as_long_as_it_is_kept) {
  for (const auto& [truncation_retention, trusted] : {std::pair{"log", false}, {"data", true}}) {
    memory_config c = dp2_memory("strict", 1e4);
    c.truncation_retention = truncation_retention;
    memory_fixture bed(c);
    ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
    constexpr picoseconds second = 1'000'000'000'000;
    for (const std::uint64_t address : {0, 4096, 4096}) {
      bed.submit(access::write, address);
      bed.barrier();
      bed.run();
    }
    EXPECT_EQ(bed.memory->trusted_logs(20'000 * second).has_value(), trusted);
    for (const std::uint64_t address : {64, 4096}) bed.submit(access::write, address);
    bed.run();
    EXPECT_FALSE(bed.memory->trusted_logs(20'000 * second)) << "the last write is a commit";
  }
}

// --- wear ---

// D8. Twenty transactions, of two slots in turn: each writes a record, the commit line, a line of
// data, and the commit line. So the line of data and both commit lines have 20 writes, the commit
// line of slot 0 first. Here the writes came in half a year.
TEST(dp2_memory, has_the_lifetime_of_its_most_worn_line_and_of_equation_1) {
  tape_of_transactions tape(20);
  auto reader = media::tape_reader::from_memory(tape.bytes());
  event_queue time;
  memory_config c = dp2_memory("strict", 1e4);
  c.endurance_writes = 1e8;
  auto memory = make_dp2_memory(time, c, reader->header());
  write_trace trace(std::move(*reader));
  ASSERT_TRUE(replay_writes(trace, time, **memory));
  run_result r;
  add_wear(r, "m", **memory, 15'778'800'000'000'000'000u);
  const auto of = [&](const char* what) {
    const quantity* q = find(r, std::string("m.wear.") + what);
    EXPECT_NE(q, nullptr) << what;
    return q == nullptr ? -1 : q->value;
  };
  EXPECT_EQ(of("log_records"), 20);
  EXPECT_EQ(of("commit_lines"), 40);
  EXPECT_EQ(of("data"), 20);
  EXPECT_EQ(of("lines"), 2 + 2 + 1);
  EXPECT_EQ(of("most_writes"), 20);
  EXPECT_EQ(of("most_worn_line"), 4096 + 64);
  EXPECT_DOUBLE_EQ(of("lifetime"), 0.5 * 1e8 / 20);
  const double lines = static_cast<double>(c.capacity_bytes) / 64;
  EXPECT_DOUBLE_EQ(of("lifetime_levelled"), 0.5 * 1e8 * lines / 80);
  EXPECT_NEAR(of("longer_by_equation_1"), 100 * (0.75 * 1.7 + 0.25 - 1), 1e-9);
  EXPECT_NEAR(of("longer_by_iterations"), 100 * (1 / (0.75 / 1.7 + 0.25) - 1), 1e-9);
}

TEST(dp2_memory, truncations_that_are_kept_as_data_wear_as_data) {
  memory_config c = dp2_memory("strict", 1e4);
  c.endurance_writes = 1e8;
  c.truncation_retention = "data";
  memory_fixture bed(c);
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  for (const std::uint64_t address : {0, 4096, 8192, 4096}) bed.submit(access::write, address);
  bed.run();
  EXPECT_EQ(bed.memory->wear().truncations, 1u);
  run_result r;
  add_wear(r, "m", *bed.memory, bed.events.now());
  EXPECT_NEAR(find(r, "m.wear.longer_by_equation_1")->value, 100 * (0.5 * 1.7 + 0.5 - 1), 1e-9);
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
