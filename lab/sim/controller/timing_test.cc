// Every timing rule: the command is blocked one picosecond before its time and allowed at it; the
// rule has no effect beyond its level.
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>

namespace stele::sim {
namespace {

constexpr const char* names[] = {"activate", "precharge", "read", "write", "refresh"};
constexpr const char* level_names[] = {"channel", "rank", "bank_group", "bank"};

memory_config two_of_each() {
  memory_config c = plain_memory();
  c.ranks = c.bank_groups = c.banks = 2;
  return c;
}

// Banks 0 to 7 are (rank, group, bank) in bits. For each level: the farthest bank within bank 0's
// node, and the nearest one beyond.
constexpr unsigned within[] = {7, 3, 1, 0};
constexpr unsigned beyond[] = {0, 4, 2, 1};

picoseconds allowed(const timing_table& t, command c, unsigned bank) {
  return c == command::refresh ? t.earliest_refresh(t.rank_of(bank)) : t.earliest(c, bank);
}
void issue(timing_table& t, command c, unsigned bank, picoseconds at) {
  if (c == command::refresh)
    t.issue_refresh(t.rank_of(bank), at);
  else
    t.issue(c, bank, at);
}

TEST(timing, each_rule_blocks_until_its_time_within_its_node_only) {
  for (unsigned l = 0; l < 4; ++l)
    for (unsigned p = 0; p < 5; ++p)
      for (unsigned f = 0; f < 5; ++f) {
        if (l > 1 && (p == 4 || f == 4)) continue;
        memory_config c = two_of_each();
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

TEST(timing, a_window_counts_the_oldest_of_its_commands) {
  memory_config c = two_of_each();
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
  memory_config c = two_of_each();
  c.timing = {{"channel", "read", "read", 3},
              {"bank_group", "read", "read", 5},
              {"bank", "read", "read", 4}};
  timing_table t = *timing_table::compile(c);
  t.issue(command::read, 0, 1000);
  EXPECT_EQ(t.earliest(command::read, 0), 6000u);
  EXPECT_EQ(t.earliest(command::read, 2), 4000u);
}

// Checks a channel's commands against the rules, independently of tables and schedulers: for each
// rule, each pair of commands that it names, at one node, is far enough apart.
bool at_one_node(const memory_config& c, const timing_rule& r, const command_report& a,
                 const command_report& b) {
  const unsigned group = c.banks, rank = group * c.bank_groups;
  if (r.level == "channel") return true;
  if (r.level == "rank") return a.bank / rank == b.bank / rank;
  return r.level == "bank_group" ? a.bank / group == b.bank / group : a.bank == b.bank;
}

bool names_it(const std::string& name, const command_report& r) {
  return name == "any" || name == names[static_cast<unsigned>(r.what)];
}

unsigned violations(const memory_config& c, const timing_rule& r,
                    const std::vector<command_report>& given) {
  unsigned found = 0;
  const std::size_t reach =
      400;  // more commands than fit into the longest rule, except refresh, which is not listed
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!names_it(r.following, given[i])) continue;
    unsigned seen = 0;
    for (std::size_t j = i; j-- > (i > reach ? i - reach : 0) && seen < r.window;) {
      if (!names_it(r.preceding, given[j]) || !at_one_node(c, r, given[j], given[i])) continue;
      if (++seen == r.window && given[j].at + from_ns(r.latency_ns) > given[i].at) ++found;
    }
  }
  return found;
}

void random_load(memory_fixture& bed, unsigned requests) {
  std::uint64_t x = 7;
  for (unsigned i = 0; i < requests; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const auto bank = static_cast<unsigned>(x >> 60), row = static_cast<unsigned>(x >> 40 & 3),
               column = static_cast<unsigned>(x >> 50 & 7);
    bed.submit(x >> 33 & 3 ? access::read : access::write, bed.address(bank, row, column));
    if (i % 50 == 49) bed.run_until(bed.events.now() + from_ns(static_cast<double>(x >> 58) * 20));
  }
  bed.run();
}

TEST(timing, a_busy_ddr4_channel_breaks_no_rule) {
  for (memory_config c :
       {machine_of("ddr4-2400").nonvolatile_memory, machine_of("kiln").volatile_memory}) {
    c.refresh_interval_ns = 2000;
    memory_fixture bed(c);
    random_load(bed, 5000);
    ASSERT_EQ(bed.completed.size(), 5000u);
    std::ranges::stable_sort(bed.commands, {}, &command_report::at);
    c.timing.push_back({"rank", "refresh", "any", c.refresh_time_ns});
    for (const timing_rule& r : c.timing)
      EXPECT_EQ(violations(c, r, bed.commands), 0u) << r.level << r.preceding << r.following;
  }
}

TEST(timing, the_check_of_rules_can_fail) {
  memory_config c = machine_of("ddr4-2400").nonvolatile_memory;
  memory_fixture bed(c);
  random_load(bed, 2000);
  std::ranges::stable_sort(bed.commands, {}, &command_report::at);
  for (timing_rule r : c.timing) {
    // Skips rules that are implied by other rules: they never bind.
    if (r.following == "refresh" || r.preceding == "any") continue;
    r.latency_ns *= 20;
    EXPECT_GT(violations(c, r, bed.commands), 0u) << r.level << r.preceding << r.following;
  }
}

TEST(timing, wrong_rules_are_refused_with_a_sentence) {
  const std::pair<timing_rule, const char*> wrong[] = {
      {{"bunk", "read", "read", 1}, "names no level"},
      {{"bank", "reed", "read", 1}, "names no command"},
      {{"bank", "read", "rite", 1}, "names no command"},
      {{"bank", "read", "read", -1}, "negative latency"},
      {{"bank", "read", "read", 1, 0}, "empty window"},
      {{"bank", "refresh", "read", 1}, "below the rank"},
      {{"bank_group", "read", "refresh", 1}, "below the rank"}};
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
