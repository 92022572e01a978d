// Persist barriers: which writes may pass which, step by step; the wrong schedulers are detected.
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/pcm.h>

#include <initializer_list>

namespace stele::sim {
namespace {

constexpr picoseconds step = 100'000;  // the time of a write

memory_config two_banks(const std::string& scheduler) {
  memory_config c = plain_memory();
  c.banks = 2;
  c.scheduler = scheduler;
  c.write_pulse_ns = 100;
  return c;
}

// Two logs in rows 0 and 1 (records) and 2 and 3 (commit records), over both banks.
void set_logs(memory_fixture& bed) {
  const auto row = [&](std::uint32_t r) { return bed.address(0, r); };
  ASSERT_TRUE(
      bed.memory->set_ranges({{row(0), row(1), row(2), row(3)}, {row(1), row(2), row(3), row(4)}}));
}

struct stream_write {
  char what;  // L, C, or D; '|': a barrier
  unsigned log = 0, bank = 0, column = 0;
};

// Submits all writes at time 0 and runs. Returns each write's start in steps, and checks that it
// ends one step later.
std::vector<double> starts(const memory_config& c, std::initializer_list<stream_write> stream) {
  memory_fixture bed(c);
  set_logs(bed);
  for (const stream_write& w : stream) {
    if (w.what == '|')
      bed.barrier();
    else
      bed.write(w.bank, w.what == 'L' ? w.log : w.what == 'C' ? 2 + w.log : 10 + w.log, w.column);
  }
  bed.run();
  EXPECT_EQ(bed.memory->outstanding(), 0u);
  std::vector<double> at;
  for (const auto& [token, report] : bed.written) {
    EXPECT_EQ(report.persisted, bed.completed[token]);
    at.push_back(static_cast<double>(report.started) / step);
    EXPECT_EQ(report.persisted, report.started + step);
  }
  return at;
}
std::vector<double> starts(const std::string& scheduler,
                           std::initializer_list<stream_write> stream) {
  return starts(two_banks(scheduler), stream);
}

// Sun, Lu, Shu, "DP2", 2015, figure 4, as the text describes it: transactions A = {L0, C0, D0} and
// B = {L1, L2, C1, D1}.
const std::initializer_list<stream_write> figure_4 = {
    {'L', 0, 0}, {'L', 1, 1}, {'|'},       {'C', 0, 0}, {'|'},      {'L', 1, 1, 1},
    {'D', 0, 0}, {'|'},       {'C', 1, 1}, {'|'},       {'D', 1, 0}};

TEST(barriers, let_a_write_start_when_all_before_were_persistent_at_the_barrier) {
  for (const scheduler_kind& kind : scheduler_kinds()) {
    memory_config c = plain_memory();
    c.scheduler = kind.name;
    memory_fixture bed(c);
    bed.write(0, 1);
    bed.run();
    bed.barrier();
    bed.write(1, 1);
    bed.run();
    EXPECT_EQ(bed.completed.size(), 2u) << kind.name;
  }
}

// D1
TEST(barriers, figure_4_strict_takes_five_writes) {
  //                                                  L0 L1 C0 L2 D0 C1 D1
  EXPECT_EQ(starts("strict", figure_4), (std::vector<double>{0, 0, 1, 2, 2, 3, 4}));
}
TEST(barriers, figure_4_rule_1_lets_L2_run_beside_C0) {
  EXPECT_EQ(starts("rule1", figure_4), (std::vector<double>{0, 0, 1, 1, 2, 3, 4}));
}
TEST(barriers, figure_4_rule_2_alone_still_waits_for_L2) {
  EXPECT_EQ(starts("rule2", figure_4), (std::vector<double>{0, 0, 1, 2, 2, 3, 4}));
}
// D3
TEST(barriers, figure_4_both_rules_let_C1_run_beside_D0) {
  EXPECT_EQ(starts("rules", figure_4), (std::vector<double>{0, 0, 1, 1, 2, 2, 3}));
}
TEST(barriers, figure_4_ideal_takes_four_writes) {
  EXPECT_EQ(starts("ideal", figure_4), (std::vector<double>{0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(starts("fr-fcfs", figure_4), starts("ideal", figure_4));
}

// C1 does not wait for the data of the epoch that it moves into, once that epoch's records are
// persistent.
TEST(barriers, rule_2_passes_data_that_waits_for_its_bank) {
  const std::initializer_list<stream_write> s = {{'L', 1, 1}, {'D', 0, 0, 1}, {'D', 0, 0, 2}, {'|'},
                                                 {'C', 1, 1}, {'|'},          {'D', 1, 1}};
  EXPECT_EQ(starts("strict", s), (std::vector<double>{0, 0, 1, 2, 3}));
  EXPECT_EQ(starts("rule2", s), (std::vector<double>{0, 0, 1, 1, 2}));
}

// The same as before, with two barriers for one: the commit passes both.
TEST(barriers, without_a_write_between_them_are_one) {
  const std::initializer_list<stream_write> s = {
      {'L', 1, 1}, {'D', 0, 0, 1}, {'D', 0, 0, 2}, {'|'}, {'|'}, {'C', 1, 1}, {'|'}, {'D', 1, 1}};
  EXPECT_EQ(starts("rule2", s), (std::vector<double>{0, 0, 1, 1, 2}));
}

// D3
TEST(barriers, rule_2_goes_one_step_and_no_further) {
  const std::initializer_list<stream_write> s = {
      {'L', 1, 1}, {'D', 0, 0, 1}, {'D', 0, 0, 2}, {'|'}, {'D', 0, 0, 3}, {'|'}, {'C', 1, 1}};
  EXPECT_EQ(starts("rule2", s), (std::vector<double>{0, 0, 1, 2, 2}));
}

// The log is truncated and reused: {L, C, D, truncation} {L', C'}.
const std::initializer_list<stream_write> cut_and_reuse = {
    {'L', 0, 0}, {'|'},       {'C', 0, 1}, {'|'},       {'D', 0, 0, 1}, {'D', 0, 0, 2},
    {'|'},       {'C', 0, 1}, {'|'},       {'L', 0, 0}, {'|'},          {'C', 0, 1}};

TEST(barriers, guards_keep_a_cut_behind_its_data_and_records_behind_the_cut) {
  const std::vector<double> in_order = {0, 1, 2, 3, 4, 5, 6};
  for (const char* scheduler : {"strict", "rule1", "rule2", "rules"})
    EXPECT_EQ(starts(scheduler, cut_and_reuse), in_order) << scheduler;
}

TEST(barriers, bare_rules_overtake_the_data_and_overwrite_the_log) {
  const std::vector<double> bare = starts("bare", cut_and_reuse);
  EXPECT_LT(bare[4], bare[3] + 1);  // the truncation before the data is persistent
  EXPECT_LT(bare[5], bare[4]);      // the new record over the old, before the truncation
  memory_config c = two_banks("rules");
  c.guarded_rules = false;
  EXPECT_EQ(starts(c, cut_and_reuse), bare);
}

TEST(barriers, commit_first_passes_its_own_records) {
  const std::initializer_list<stream_write> s = {{'L', 0, 0}, {'L', 0, 0, 1}, {'|'}, {'C', 0, 1}};
  EXPECT_EQ(starts("commit_first", s), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(starts("rules", s), (std::vector<double>{0, 1, 2}));
}

TEST(barriers, writes_to_one_line_stay_in_order_under_every_scheduler) {
  for (const scheduler_kind& k : scheduler_kinds()) {
    const std::vector<double> at =
        starts(k.name, {{'L', 0, 0}, {'|'}, {'L', 0, 0}, {'D', 0, 0}, {'|'}, {'L', 0, 0}});
    EXPECT_LT(at[0], at[1]) << k.name;
    EXPECT_LT(at[1], at[3]) << k.name;
  }
}

TEST(barriers, a_full_bank_queue_holds_up_what_came_after_it) {
  memory_config c = two_banks("rules");
  c.bank_queue_entries = 2;
  // D D D fill bank 0; the record behind them could pass the barrier, but is not admitted before
  // there is room.
  const std::initializer_list<stream_write> s = {
      {'D', 0, 0, 0}, {'D', 0, 0, 1}, {'D', 0, 0, 2}, {'|'}, {'L', 0, 1}};
  EXPECT_EQ(starts(c, s), (std::vector<double>{0, 1, 2, 0}));
  c.bank_queue_entries = 1;
  EXPECT_EQ(starts(c, s), (std::vector<double>{0, 1, 2, 1}));
}

TEST(barriers, order_holds_across_channels) {
  memory_config c = two_banks("strict");
  c.channels = 2;
  c.mapping = "row-rank-bank-column-channel";
  memory_fixture bed(c);
  bed.submit(access::write, 0);
  bed.barrier();
  bed.submit(access::write, 64);
  bed.barrier();
  bed.barrier();
  bed.submit(access::write, 128);
  bed.run();
  EXPECT_EQ(bed.written[0].started, 0u);
  EXPECT_EQ(bed.written[1].started, step);
  EXPECT_EQ(bed.written[1].channel, 1u);
  EXPECT_EQ(bed.written[2].started, 2 * step);
}

TEST(barriers, log_writes_take_the_shorter_time_of_their_retention) {
  for (const char* scheduler : {"strict", "fr-fcfs", "ideal"}) {
    memory_fixture bed(dp2_memory(scheduler, 1e4));
    ASSERT_TRUE(bed.memory->set_ranges({{4096, 8192, 8192, 8256}}));
    bed.submit(access::write, 0);
    bed.submit(access::write, 4096 + 64);
    bed.submit(access::write, 8192 + 0);
    bed.run();
    EXPECT_EQ(bed.written[0].persisted - bed.written[0].started, 1'425'000u) << scheduler;
    EXPECT_EQ(bed.written[1].persisted - bed.written[1].started, 838'235u) << scheduler;
    EXPECT_EQ(bed.written[2].persisted - bed.written[2].started, 838'235u) << scheduler;
  }
}

TEST(ranges, wrong_ranges_are_refused) {
  memory_fixture bed(two_banks("rules"));
  EXPECT_FALSE(bed.memory->set_ranges({{0, 128, 64, 192}}));
  EXPECT_FALSE(bed.memory->set_ranges({{128, 64, 256, 320}}));
  EXPECT_FALSE(bed.memory->set_ranges({{0, 100, 256, 320}}));
  bed.write(0, 0);
  EXPECT_FALSE(bed.memory->set_ranges({{0, 128, 128, 192}}));
  bed.run();
  EXPECT_TRUE(bed.memory->set_ranges({{0, 128, 128, 192}}));
}

// D2
TEST(ranges, tell_writes_apart_by_address) {
  const log_ranges r =
      *log_ranges::of({{64, 256, 0, 64}, {512, 640, 256, 320}, {1024, 2048, 4096, 4096}});
  const auto what = [&](std::uint64_t a) {
    return std::pair{r.classify(a).what, r.classify(a).log};
  };
  EXPECT_EQ(what(0), std::pair(write_class::commit_record, 0u));
  EXPECT_EQ(what(64), std::pair(write_class::log_record, 0u));
  EXPECT_EQ(what(255), std::pair(write_class::log_record, 0u));
  EXPECT_EQ(what(256), std::pair(write_class::commit_record, 1u));
  EXPECT_EQ(what(320), std::pair(write_class::data, no_log));
  EXPECT_EQ(what(639), std::pair(write_class::log_record, 1u));
  EXPECT_EQ(what(640), std::pair(write_class::data, no_log));
  EXPECT_EQ(what(1024), std::pair(write_class::log_line, 2u)) << "no commit lines of its own";
  EXPECT_EQ(what(4096), std::pair(write_class::data, no_log));
}

}  // namespace
}  // namespace stele::sim
