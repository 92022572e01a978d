// Every command of a channel keeps every rule of its configuration, for all machines, schedulers
// and page policies; planted bugs are found; the check itself finds each rule that is broken.
#include <gmock/gmock.h>
#include <sim/controller/command_rules.h>
#include <sim/controller/memory_fixture.h>

#include <filesystem>

namespace stele::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// The memories of all machines of lab/configs, with their names.
std::map<std::string, memory_config> all_memories() {
  std::map<std::string, memory_config> all;
  for (const auto& file : std::filesystem::directory_iterator(STELE_SOURCE_DIR "/lab/configs")) {
    const machine_config m = machine_of(file.path().stem());
    all.emplace(m.name + ", nonvolatile", in_cycles(m.nonvolatile_memory));
    if (!m.name.starts_with("ddr"))  // else both memories are the same
      all.emplace(m.name + ", volatile", in_cycles(m.volatile_memory));
  }
  // Per-bank refresh, as of LPDDR4: banks without groups, two ranks.
  memory_config c = machine_of("ddr4-3200").nonvolatile_memory;
  c.banks = 16, c.bank_groups = 1;
  c.refresh = "same-bank";
  c.refresh_interval_ns /= 16, c.refresh_time_ns = 100;
  all.emplace("per-bank refresh", in_cycles(c));
  c = machine_of("ddr4-3200").nonvolatile_memory;
  c.ranks = 256 / (c.bank_groups * c.banks);
  all.emplace("256 banks", in_cycles(c));
  return all;
}

// More refreshes than usual, so that short runs meet them in all states.
memory_config refreshed_often(memory_config c) {
  if (c.refresh_interval_ns > 0) c.refresh_interval_ns = 4 * c.refresh_time_ns;
  return c;
}

// Requests to few rows of all banks, or to consecutive lines; in bursts, with idle times between.
enum class load : std::uint8_t { random, stream };

void run_load(memory_fixture& bed, load how, unsigned requests) {
  const memory_config& c = bed.memory->config();
  EXPECT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  std::uint64_t x = 7;
  for (unsigned i = 0; i < requests; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const device_address where{static_cast<unsigned>(x >> 36) % (c.controllers * c.channels),
                               static_cast<unsigned>(x >> 56) % (c.ranks * c.bank_groups * c.banks),
                               static_cast<std::uint32_t>(x >> 40 & 3)};
    const bool write = (x >> 33 & 3) == 0;
    bed.submit(write ? access::write : access::read,
               how == load::stream ? i * line_bytes
                                   : bed.memory->address_map().address_of(where, x >> 50 & 7));
    if (write && (x >> 45 & 3) == 0) bed.barrier();
    if (i % 50 == 49) bed.run_until(bed.events.now() + from_ns(static_cast<double>(x >> 58) * 20));
  }
  bed.run();
  ASSERT_EQ(bed.completed.size(), requests);
}

std::vector<std::string> broken_by(const memory_config& c, load how, unsigned requests,
                                   controller_mutant mutant = controller_mutant::none) {
  memory_fixture bed(c, mutant);
  run_load(bed, how, requests);
  return command_rules::broken(c, bed.commands);
}

std::string first_of(const std::vector<std::string>& sentences) {
  return sentences.empty() ? "" : sentences.front();
}

TEST(command_rules, no_command_breaks_one_under_any_scheduler_and_page_policy) {
  for (const auto& [name, memory] : all_memories())
    for (const scheduler_kind& scheduler : scheduler_kinds())
      for (const bool open_page : {true, false})
        for (const load how : {load::random, load::stream}) {
          memory_config c = refreshed_often(memory);
          c.scheduler = scheduler.name;
          c.open_page = open_page;
          EXPECT_EQ(first_of(broken_by(c, how, 1200)), "")
              << name << ", " << c.scheduler << (open_page ? ", open" : ", closed") << " pages";
        }
}

// Without a rule that delays it, a row closes by itself at once, and not before it was opened.
TEST(command_rules, a_memory_without_rules_closes_its_rows_after_it_has_opened_them) {
  memory_config c = plain_memory();
  c.open_page = false;
  memory_fixture bed(c);
  run_load(bed, load::random, 1200);
  EXPECT_EQ(first_of(command_rules::broken(c, bed.commands)), "");
  EXPECT_EQ(bed.statistics().open_ps, 0u);
}

// Without long idle times every refresh is reported; with them, all are counted.
TEST(command_rules, refreshes_of_a_long_run_are_one_an_interval) {
  for (const auto& [name, c] : all_memories()) {
    if (c.refresh_interval_ns == 0) continue;
    memory_fixture bed(c);
    for (unsigned i = 0; i < 4000; ++i) {
      bed.read(i % c.banks, i % 5, i % 3);
      bed.run_until(bed.events.now() + from_ns(i % 1000 == 0 ? 100'000 : 300));
    }
    bed.run();
    const auto intervals = bed.events.now() / from_ns(c.refresh_interval_ns);
    EXPECT_GT(intervals, 150u);
    const memory_statistics s = bed.statistics();
    EXPECT_NEAR(static_cast<double>(s.refreshes) / (c.controllers * c.channels * c.ranks),
                static_cast<double>(intervals), 1)
        << name;
    EXPECT_EQ(first_of(command_rules::broken(c, bed.commands)), "") << name;
  }
}

TEST(command_rules, staggered_refreshes_are_due_in_turn) {
  memory_config c = refreshed_often(in_cycles(machine_of("ddr4-3200").nonvolatile_memory));
  c.staggered_refresh = true;
  memory_fixture bed(c);
  run_load(bed, load::random, 1200);
  EXPECT_EQ(first_of(command_rules::broken(c, bed.commands)), "");
  c.staggered_refresh = false;
  EXPECT_THAT(first_of(command_rules::broken(c, bed.commands)), testing::HasSubstr("tREFI"));
}

// --- planted bugs ---

TEST(command_rules, planted_bugs_of_the_controller_are_found) {
  const std::tuple<controller_mutant, bool, std::vector<const char*>> bugs[] = {
      {controller_mutant::precharged_at_once, false, {"tRAS of", "tRTP of", "tWR of"}},
      {controller_mutant::last_bank_left_open, true, {"no row is open at a refresh"}},
      {controller_mutant::last_bank_served, true, {"tREFI: a refresh is due"}},
      {controller_mutant::refresh_drifts, true, {"tREFI: a refresh is due"}},
      {controller_mutant::rows_dropped, true, {"cells being written from a row: the activate"}},
      {controller_mutant::rows_dropped, false, {"cells being written from a row: the automatic"}}};
  for (const auto& [mutant, open_page, rules] : bugs) {
    const char* machine = mutant == controller_mutant::rows_dropped ? "kiln" : "ddr4-2400";
    memory_config c = refreshed_often(in_cycles(machine_of(machine).nonvolatile_memory));
    c.open_page = open_page;
    const auto found = broken_by(c, load::random, 3000, mutant);
    for (const char* rule : rules) EXPECT_THAT(found, Contains(HasSubstr(rule)));
  }
}

TEST(command_rules, planted_bugs_of_same_bank_refreshes_are_found) {
  const std::pair<controller_mutant, const char*> bugs[] = {
      {controller_mutant::last_bank_left_open, "no row is open at a refresh"},
      {controller_mutant::last_bank_served, "tREFI: a refresh is due"},
      {controller_mutant::refresh_drifts, "tREFI: a refresh is due"},
      {controller_mutant::same_banks_again, "same-bank refreshes take turns"}};
  const memory_config c =
      refreshed_often(in_cycles(machine_of("ddr5-4800-same-bank").nonvolatile_memory));
  EXPECT_THAT(broken_by(c, load::random, 3000), IsEmpty());
  for (const auto& [mutant, rule] : bugs)
    EXPECT_THAT(broken_by(c, load::random, 3000, mutant), Contains(HasSubstr(rule)));
}

// --- the check itself ---

// The controller keeps the rules of its machine, so a machine whose rule is longer sees it broken.
TEST(command_rules, each_rule_of_a_machine_can_be_broken) {
  const memory_config c = refreshed_often(in_cycles(machine_of("ddr4-2400").nonvolatile_memory));
  memory_fixture bed(c);
  run_load(bed, load::random, 3000);
  for (std::size_t i = 0; i < c.timing.size(); ++i) {
    memory_config longer = c;
    timing_rule& rule = longer.timing[i];
    rule.latency_ns *= 20;
    EXPECT_THAT(
        command_rules::broken(longer, bed.commands),
        Contains(HasSubstr(fmt::format(" of a {} is {} ps", rule.level, from_ns(rule.latency_ns)))))
        << rule.preceding << " " << rule.following;
  }
  memory_config longer = c;
  longer.refresh_time_ns *= 1.2;
  EXPECT_THAT(command_rules::broken(longer, bed.commands), Contains(HasSubstr("tRFC of a rank")));
}

// Two ranks of two groups of two banks; commands in order, a row for each where it has one.
memory_config two_of_each() {
  memory_config c = plain_memory();
  c.ranks = c.bank_groups = c.banks = 2;
  return c;
}

command_report at(picoseconds when, command what, unsigned bank, std::uint32_t row = no_row,
                  bool automatic = false) {
  return {what, 0, bank / 4, bank, when, row, automatic};
}

// Banks are (rank, group, bank) in bits. For each level: the farthest bank within bank 0's node,
// and the nearest one beyond.
TEST(command_rules, a_rule_reaches_as_far_as_its_level_and_lasts_as_long_as_its_latency) {
  const std::tuple<const char*, unsigned, unsigned> levels[] = {
      {"channel", 7, 8}, {"rank", 3, 4}, {"bank_group", 1, 2}};
  for (const auto& [level, within, beyond] : levels) {
    memory_config c = two_of_each();
    c.timing = {{level, "activate", "activate", 10}};
    const auto pair = [&](unsigned bank, picoseconds when) {
      return command_rules::broken(
          c, {at(1000, command::activate, 0, 1), at(when, command::activate, bank, 1)});
    };
    EXPECT_THAT(pair(within, 11'000), IsEmpty()) << level;
    EXPECT_EQ(pair(within, 10'999),
              std::vector{fmt::format(
                  "tRRD of a {} is 10000 ps: the activate of bank {} of channel 0 at 10999 ps "
                  "comes too soon after the activate of bank 0 of channel 0 at 1000 ps",
                  level, within)});
    if (beyond < 8) {
      EXPECT_THAT(pair(beyond, 1000), IsEmpty()) << level;
    }
  }
}

TEST(command_rules, a_rule_between_ranks_is_for_other_ranks_of_the_channel) {
  memory_config c = two_of_each();
  c.channels = 2;
  c.timing = {{"other_ranks", "activate", "activate", 10}};
  const auto pair = [&](unsigned channel, unsigned bank, picoseconds when) {
    command_report second = at(when, command::activate, bank, 1);
    second.channel = channel;
    return command_rules::broken(c, {at(1000, command::activate, 0, 1), second});
  };
  EXPECT_THAT(pair(0, 4, 11'000), IsEmpty());
  EXPECT_THAT(pair(0, 4, 10'999), testing::ElementsAre(HasSubstr("tRRD of another rank")));
  EXPECT_THAT(pair(0, 1, 1000), IsEmpty());
  EXPECT_THAT(pair(1, 4, 1000), IsEmpty());
}

TEST(command_rules, a_window_counts_from_the_oldest_of_its_commands) {
  memory_config c = two_of_each();
  c.timing = {{"rank", "activate", "activate", 21, 4}};
  const auto fifth = [&](picoseconds when) {
    return command_rules::broken(
        c, {at(100, command::activate, 0, 1), at(200, command::activate, 1, 1),
            at(300, command::activate, 2, 1), at(400, command::activate, 3, 1),
            at(500, command::precharge, 0), at(when, command::activate, 0, 1)});
  };
  EXPECT_THAT(fifth(21'100), IsEmpty());
  EXPECT_THAT(fifth(21'099), testing::ElementsAre(HasSubstr("tFAW of a rank")));
}

TEST(command_rules, what_no_configuration_switches_off_is_checked) {
  memory_config c = two_of_each();
  c.refresh_interval_ns = 100;
  c.refresh_time_ns = 10;
  c.read_latency_ns = 20;
  c.write_latency_ns = 15;
  c.timing = {{"channel", "read", "read", 4}, {"channel", "write", "write", 4}};
  using enum command;
  const std::pair<std::vector<command_report>, const char*> streams[] = {
      {{at(1, activate, 0, 1), at(2, activate, 0, 2)}, "a row is opened in a closed bank"},
      {{at(1, read, 0, 1)}, "only an open row is read, written or closed"},
      {{at(1, activate, 0, 1), at(9, precharge, 0, no_row, true), at(9, read, 0, 1)},
       "only an open row is read, written or closed"},
      {{at(1, precharge, 0)}, "only an open row is read, written or closed"},
      {{at(1, activate, 0, 1), at(2, write, 0, 2)}, "is for row 2 and finds row 1"},
      {{at(1, activate, 3, 1), at(100'000, refresh, 0)}, "no row is open at a refresh"},
      {{at(100'000, refresh, 0), at(109'999, activate, 3, 1)}, "tRFC of a rank is 10000 ps"},
      {{at(99'999, refresh, 0)}, "tREFI: the refresh of rank 0"},
      {{at(100'000, activate, 3, 1)}, "tREFI: a refresh is due at 100000 ps"},
      {{at(1, activate, 0, 1), at(1, activate, 4, 1), at(1000, read, 0, 1), at(6000, write, 4, 1)},
       "data does not overlap on the bus"}};
  for (const auto& [issued, sentence] : streams)
    EXPECT_THAT(command_rules::broken(c, issued), testing::ElementsAre(HasSubstr(sentence)));
  const std::vector<command_report> sound = {
      at(1, activate, 0, 1),     at(1, activate, 4, 1),    at(1000, read, 0, 1),
      at(10'000, write, 4, 1),   at(70'000, precharge, 0), at(100'000, refresh, 0),
      at(104'000, precharge, 4), at(104'000, refresh, 4),  at(110'000, activate, 0, 2)};
  EXPECT_THAT(command_rules::broken(c, sound), IsEmpty());
}

// Two groups of two banks: refreshes of the banks 0 and 2, then of 1 and 3. Bank 4 is bank 0 of the
// other rank.
TEST(command_rules, same_bank_refreshes_take_turns_and_are_of_their_banks_alone) {
  memory_config c = two_of_each();
  c.refresh = "same-bank";
  c.refresh_interval_ns = 100;
  c.refresh_time_ns = 10;
  c.timing = {{"rank", "refresh", "activate", 5}};
  using enum command;
  const std::pair<std::vector<command_report>, const char*> streams[] = {
      {{at(1, activate, 2, 1), at(100'000, refresh, 0)}, "no row is open at a refresh"},
      {{at(100'000, refresh, 0), at(109'999, activate, 2, 1)}, "tRFCsb of a bank is 10000 ps"},
      {{at(100'000, refresh, 0), at(104'999, activate, 3, 1)}, "of a rank is 5000 ps"},
      {{at(100'000, refresh, 1)}, "take turns: it is that of bank 0"},
      {{at(100'000, refresh, 0), at(200'000, refresh, 0)}, "take turns: it is that of bank 1"},
      {{at(100'000, refresh, 0), at(200'000, activate, 3, 1)}, "a refresh is due at 200000 ps"},
      {{at(100'000, activate, 2, 1)}, "a refresh is due at 100000 ps"},
      {{at(100'000, activate, 1, 1), at(150'000, precharge, 1), at(200'000, refresh, 1)},
       "no refresh is left out: one was due at 100000 ps"}};
  for (const auto& [issued, sentence] : streams)
    EXPECT_THAT(command_rules::broken(c, issued), testing::ElementsAre(HasSubstr(sentence)));
  const std::vector<command_report> sound = {
      at(1, activate, 1, 1),       at(100'000, refresh, 0),     at(105'000, activate, 3, 1),
      at(110'000, activate, 2, 1), at(120'000, precharge, 1),   at(121'000, precharge, 3),
      at(200'000, refresh, 1),     at(205'000, activate, 0, 1), at(100'000, refresh, 4),
      at(200'000, refresh, 5)};
  EXPECT_THAT(command_rules::broken(c, sound), IsEmpty());
}

TEST(command_rules, a_bank_whose_cells_are_being_written_takes_no_command) {
  memory_config c = two_of_each();
  c.technology = "stt-mram";
  c.write_latency_ns = 15;
  c.write_pulse_ns = 11;
  const auto close = [&](picoseconds when) {
    return command_rules::broken(c, {at(0, command::activate, 0, 1), at(0, command::write, 0, 1),
                                     at(when, command::precharge, 0)});
  };
  EXPECT_THAT(close(26'000), IsEmpty());
  EXPECT_THAT(close(25'999), testing::ElementsAre(HasSubstr("cells being written of a bank")));
}

// The write is in the row buffer after 15 ns, in the cells 11 ns after the row's end, closed 4
// later.
TEST(command_rules, a_written_row_goes_to_the_cells_before_its_bank_opens_another) {
  memory_config c = two_of_each();
  c.technology = "stt-mram";
  c.write_latency_ns = 15;
  c.write_pulse_ns = 11;
  c.write_back_rows = true;
  c.timing = {{"bank", "precharge", "activate", 4}, {"rank", "precharge", "refresh", 3}};
  using enum command;
  const auto then = [&](command_report close, command_report next) {
    return command_rules::broken(c, {at(0, activate, 0, 1), at(0, write, 0, 1), close, next});
  };
  EXPECT_THAT(then(at(20'000, precharge, 0), at(35'000, activate, 0, 2)), IsEmpty());
  const auto broken = testing::ElementsAre(HasSubstr("cells being written from a row"));
  EXPECT_THAT(then(at(20'000, precharge, 0), at(34'999, activate, 0, 2)), broken);
  EXPECT_THAT(then(at(1000, precharge, 0), at(30'000, activate, 0, 2)), IsEmpty());
  EXPECT_THAT(then(at(1000, precharge, 0), at(29'999, activate, 0, 2)), broken);
  EXPECT_THAT(then(at(20'000, precharge, 0), at(33'999, refresh, 0)), broken);
  EXPECT_THAT(then(at(20'000, precharge, 0), at(20'000, activate, 1, 2)), IsEmpty());
  const auto itself = [&](picoseconds when) { return at(when, precharge, 0, no_row, true); };
  EXPECT_THAT(then(itself(26'000), at(30'000, activate, 0, 2)), IsEmpty());
  EXPECT_THAT(then(itself(25'999), at(30'000, activate, 0, 2)), broken);
}

}  // namespace
}  // namespace stele::sim
