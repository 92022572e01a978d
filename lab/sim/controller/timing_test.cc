// Every timing rule: the command is blocked one picosecond before its time and allowed at it; the
// rule has no effect beyond its level.
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>

namespace stele::sim {
namespace {

constexpr const char* names[] = {"activate", "precharge", "read", "write", "refresh"};
constexpr const char* level_names[] = {"channel", "rank", "bank_group", "bank"};

memory_config two_everywhere() {
  memory_config c = plain_memory();
  c.ranks = c.bank_groups = c.banks = 2;
  return c;
}

// Banks 0 to 7 are (rank, group, bank) in bits. For each level: the farthest bank within bank 0's
// node, and the nearest one beyond.
constexpr unsigned within[] = {7, 3, 1, 0};
constexpr unsigned beyond[] = {0, 4, 2, 1};

// A refresh is of this bank alone.
picoseconds allowed(const timing_table& t, command c, unsigned bank) {
  return c == command::refresh ? t.earliest_refresh(std::uint64_t{1} << bank) : t.earliest(c, bank);
}
void issue(timing_table& t, command c, unsigned bank, picoseconds at) {
  if (c == command::refresh)
    t.issue_refresh(std::uint64_t{1} << bank, at);
  else
    t.issue(c, bank, at);
}

TEST(timing, each_rule_blocks_until_its_time_within_its_node_only) {
  for (unsigned l = 0; l < 4; ++l)
    for (unsigned p = 0; p < 5; ++p)
      for (unsigned f = 0; f < 5; ++f) {
        memory_config c = two_everywhere();
        c.timing = {{level_names[l], names[p], names[f], 12.5}};
        timing_table t = *timing_table::compile(c);
        issue(t, static_cast<command>(p), 0, 1000);
        EXPECT_EQ(allowed(t, static_cast<command>(f), within[l]), 13500u)
            << level_names[l] << names[p] << names[f];
        EXPECT_LE(l ? allowed(t, static_cast<command>(f), beyond[l]) : 0, 1000u)
            << level_names[l] << names[p] << names[f];
        for (unsigned other = 0; other < 4; ++other) {
          EXPECT_LE(other == f ? 0 : allowed(t, static_cast<command>(other), within[l]), 1000u);
        }
      }
}

TEST(timing, a_refresh_is_of_its_banks_and_waits_for_all_of_them) {
  memory_config c = two_everywhere();
  c.timing = {{"bank", "precharge", "refresh", 13},
              {"bank", "refresh", "activate", 100},
              {"bank_group", "refresh", "activate", 40},
              {"rank", "refresh", "activate", 30}};
  timing_table t = *timing_table::compile(c);
  EXPECT_EQ(t.banks_of(1), 0xf0u);
  EXPECT_EQ(t.same_banks_of(1, 1), 0xa0u);  // bank 1 of both groups of rank 1
  t.issue(command::precharge, 7, 1000);
  t.issue(command::precharge, 4, 9000);
  EXPECT_EQ(t.earliest_refresh(t.same_banks_of(1, 1)), 14'000u);
  EXPECT_EQ(t.earliest_refresh(t.banks_of(1)), 22'000u);
  t.issue_refresh(t.same_banks_of(1, 1), 20'000);
  const picoseconds after[] = {0, 0, 0, 0, 60'000, 120'000, 60'000, 120'000};
  for (unsigned bank = 0; bank < 8; ++bank)
    EXPECT_EQ(t.earliest(command::activate, bank), after[bank]) << bank;
}

TEST(timing, a_rule_between_ranks_blocks_the_other_ranks_until_its_time) {
  for (unsigned p = 0; p < 5; ++p)
    for (unsigned f = 0; f < 5; ++f) {
      memory_config c = two_everywhere();
      c.ranks = 4;
      c.timing = {{"other_ranks", names[p], names[f], 12.5}};
      timing_table t = *timing_table::compile(c);
      issue(t, static_cast<command>(p), 5, 1000);  // of rank 1
      for (unsigned rank = 0; rank < 4; ++rank)
        for (unsigned other = 0; other < 5; ++other)
          EXPECT_EQ(allowed(t, static_cast<command>(other), 4 * rank),
                    rank != 1 && other == f ? 13'500u : 0u)
              << names[p] << names[f] << rank << other;
    }
}

TEST(timing, a_window_counts_the_oldest_of_its_commands) {
  memory_config c = two_everywhere();
  c.timing = {{"rank", "activate", "activate", 21, 4}};
  timing_table t = *timing_table::compile(c);
  for (const picoseconds at : {100, 200, 300}) t.issue(command::activate, 0, at);
  EXPECT_LE(t.earliest(command::activate, 3), 300u);
  t.issue(command::activate, 1, 400);
  EXPECT_EQ(t.earliest(command::activate, 3), 21100u);
  EXPECT_LE(t.earliest(command::activate, 4), 400u);  // the other rank
  t.issue(command::activate, 3, 21100);
  EXPECT_EQ(t.earliest(command::activate, 0), 21200u);
}

TEST(timing, of_two_rules_the_later_time_counts) {
  memory_config c = two_everywhere();
  c.timing = {{"channel", "read", "read", 3},     {"bank_group", "read", "read", 5},
              {"bank", "read", "read", 4},        {"bank", "read", "precharge", 9},
              {"bank", "read", "precharge", 2},   {"other_ranks", "read", "write", 8},
              {"other_ranks", "read", "write", 6}};
  timing_table t = *timing_table::compile(c);
  t.issue(command::read, 0, 1000);
  EXPECT_EQ(t.earliest(command::read, 0), 6000u);
  EXPECT_EQ(t.earliest(command::read, 2), 4000u);
  EXPECT_EQ(t.earliest(command::precharge, 0), 10'000u);
  EXPECT_EQ(t.earliest(command::write, 4), 9000u);
}

// 14.161 ns is 17 cycles of 0.833; 1.02 cycles count as one, as JEDEC rounds, 1.03 as two.
TEST(timing, times_are_whole_cycles_of_the_clock) {
  memory_config c = plain_memory();
  c.timing = {{"bank", "activate", "read", 14.166667},
              {"bank", "read", "precharge", 0.85},
              {"bank", "write", "precharge", 0.858}};
  c.refresh_interval_ns = 10.5;  // 12.6 cycles: down to 12
  c.write_latency_ns = 1;
  EXPECT_EQ(in_cycles(c).timing[0].latency_ns, 14.166667);  // without a clock
  c.clock_ns = 0.833;
  c = in_cycles(c);
  EXPECT_EQ(from_ns(c.timing[0].latency_ns), 14'161u);
  EXPECT_EQ(from_ns(c.timing[1].latency_ns), 833u);
  EXPECT_EQ(from_ns(c.timing[2].latency_ns), 2 * 833u);
  EXPECT_EQ(from_ns(c.refresh_interval_ns), 12 * 833u);
  EXPECT_EQ(from_ns(c.write_latency_ns), 2 * 833u);
  EXPECT_EQ(from_ns(in_cycles(c).timing[2].latency_ns), 2 * 833u);  // rounded already
  memory_fixture bed(c);
  EXPECT_EQ(from_ns(bed.memory->config().timing[1].latency_ns), 833u);
}

TEST(timing, wrong_rules_are_refused_with_a_sentence) {
  const std::pair<timing_rule, const char*> wrong[] = {
      {{"bunk", "read", "read", 1}, "names no level"},
      {{"bank", "reed", "read", 1}, "names no command"},
      {{"bank", "read", "rite", 1}, "names no command"},
      {{"bank", "read", "read", -1}, "negative latency"},
      {{"bank", "read", "read", 1, 0}, "empty window"},
      {{"other_ranks", "read", "read", 1, 4}, "several commands between ranks"}};
  for (const auto& [rule, sentence] : wrong) {
    memory_config c = plain_memory();
    c.timing = {rule};
    event_queue events;
    const auto made = make_memory(events, c);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find(sentence), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace stele::sim
