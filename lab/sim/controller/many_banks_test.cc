// A channel of more than 64 banks: 4 ranks of 8 groups of 4 banks. Times are sums of the rules.
#include <sim/controller/memory_fixture.h>
#include <sim/controller/scheduler.h>

namespace stele::sim {
namespace {

constexpr unsigned banks_of_rank = 32;

// Precharge 13 ns, activate 14 ns, read 20 ns.
memory_config of_128_banks() {
  memory_config c = plain_memory();
  c.ranks = 4, c.bank_groups = 8, c.banks = 4;
  c.age_limit_ns = 0;
  c.timing = {{"bank", "precharge", "activate", 13},
              {"bank", "activate", "read", 14},
              {"bank", "activate", "write", 14}};
  c.read_latency_ns = c.write_latency_ns = 20;
  return c;
}

TEST(many_banks, a_set_has_each_bank_once_and_in_order) {
  bank_set s;
  EXPECT_TRUE(s.empty());
  for (const unsigned bank : {255U, 64U, 0U, 63U, 127U, 128U}) s.insert(bank);
  EXPECT_EQ(s.first(), 0u);
  EXPECT_EQ(s.last(), 255u);
  std::vector<unsigned> seen;
  s.for_each([&](unsigned bank) { seen.push_back(bank); });
  EXPECT_EQ(seen, (std::vector<unsigned>{0, 63, 64, 127, 128, 255}));
  s.erase(0), s.erase(255);
  EXPECT_FALSE(s.has(0) || s.has(1) || s.has(65));
  EXPECT_EQ(s.first(), 63u);
  EXPECT_EQ(s.last(), 128u);
  EXPECT_EQ(s & ~s, bank_set());
  EXPECT_EQ(s | ~s, bank_set::all());
  EXPECT_EQ(bank_set::of(65) & bank_set::of(1), bank_set());
}

// Banks a word apart: neither row closes the other, and neither waits for the other.
TEST(many_banks, banks_64_apart_share_no_state) {
  for (const scheduler_kind& kind : scheduler_kinds()) {
    memory_config c = of_128_banks();
    c.scheduler = kind.name;
    memory_fixture bed(c);
    const unsigned first = bed.read(1, 1);
    bed.run();
    const unsigned other = bed.read(65, 2), hit = bed.read(1, 1, 1);
    bed.run();
    EXPECT_EQ(bed.completed[first], 34'000u) << kind.name;
    const picoseconds behind = kind.name == std::string("fcfs") ? 34'000 : 20'000;
    EXPECT_EQ(bed.completed[hit] - bed.completed[first], behind) << kind.name;
    EXPECT_EQ(bed.completed[other] - bed.completed[first], 34'000u) << kind.name;
    EXPECT_EQ(bed.statistics().precharges, 0u) << kind.name;
  }
}

TEST(many_banks, the_last_bank_has_hits_and_conflicts) {
  for (const unsigned bank : {63U, 64U, 127U}) {
    memory_fixture bed(of_128_banks());
    bed.read(bank, 1);
    bed.run();
    const picoseconds from = bed.events.now();
    const unsigned hit = bed.read(bank, 1, 1), conflict = bed.read(bank, 2);
    bed.run();
    EXPECT_EQ(bed.completed[hit] - from, 20'000u) << bank;
    EXPECT_EQ(bed.completed[conflict] - from, 13'000u + 34'000u) << bank;
    EXPECT_EQ(bed.statistics().row_conflicts, 1u) << bank;
    EXPECT_EQ(bed.commands.back().bank, bank);
    EXPECT_EQ(bed.commands.back().rank, bank / banks_of_rank);
  }
}

// All banks work at once: the requests of 128 banks take as long as one.
TEST(many_banks, all_banks_work_at_once) {
  memory_config c = of_128_banks();
  c.read_queue_entries = 128;
  memory_fixture bed(c);
  for (unsigned bank = 0; bank < 128; ++bank) bed.read(bank, 3);
  bed.run();
  EXPECT_EQ(bed.events.now(), 34'000u);
  EXPECT_EQ(bed.statistics().activates, 128u);
}

// The ranks are due at 250, 500, 750 and 1000 ns; a refresh takes 100 ns.
memory_config refreshed_128_banks() {
  memory_config c = of_128_banks();
  c.refresh_interval_ns = 1000, c.refresh_time_ns = 100;
  c.staggered_refresh = true;
  return c;
}

TEST(many_banks, the_refresh_of_the_last_rank_is_of_its_banks_alone) {
  memory_fixture bed(refreshed_128_banks());
  bed.read(96, 1), bed.read(32, 1), bed.read(127, 1);
  bed.run_until(1'000'000);
  const unsigned refreshed = bed.read(127, 1), first = bed.read(96, 2), other = bed.read(32, 1),
                 same_place = bed.read(63, 1);
  bed.run();
  EXPECT_EQ(bed.completed[refreshed], 1'100'000u + 34'000u);
  EXPECT_EQ(bed.completed[first], 1'100'000u + 34'000u);
  EXPECT_EQ(bed.completed[other], 1'034'000u) << "its rank was refreshed at 500 ns";
  EXPECT_EQ(bed.completed[same_place], 1'034'000u);
}

// The refresh at 1000 ns is of the banks of number 0: 0, 4, ... of each rank.
TEST(many_banks, a_same_bank_refresh_is_of_one_bank_of_each_group) {
  memory_config c = refreshed_128_banks();
  c.staggered_refresh = false;
  c.refresh = "same-bank";
  memory_fixture bed(c);
  bed.run_until(999'999);
  bed.read(1, 1);  // keeps the channel awake
  bed.run_until(1'000'001);
  std::map<unsigned, unsigned> read;
  for (const unsigned bank : {64U, 65U, 66U, 67U, 124U, 125U, 127U}) read[bank] = bed.read(bank, 1);
  bed.run();
  for (const auto& [bank, token] : read)
    EXPECT_EQ(bed.completed[token], (bank % 4 == 0 ? 1'100'000u : 1'000'001u) + 34'000u) << bank;
  EXPECT_EQ(bed.statistics().refreshes, 4u);
}

// A row that was opened for a read is not closed for a write to the bank before it is served, in a
// bank of any word.
TEST(many_banks, a_row_opened_for_a_request_is_kept_for_it) {
  memory_config c = of_128_banks();
  c.write_queue_entries = 4, c.write_drain_from = 0.5, c.write_drain_to = 0.1;
  for (const unsigned bank : {1U, 65U, 127U}) {
    memory_fixture bed(c);
    const unsigned read = bed.read(bank, 1);
    bed.run_until(5'000);
    for (unsigned row = 2; row < 5; ++row) bed.write(bank, row);  // drains from now on
    bed.run();
    EXPECT_EQ(bed.completed[read], 34'000u) << bank;
  }
}

TEST(many_banks, more_than_256_are_refused) {
  memory_config c = of_128_banks();
  c.ranks = 16;
  event_queue events;
  const auto made = make_memory(events, c);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("512 banks in a channel; at most 256, use more channels"),
            std::string::npos)
      << made.error().message;
}

}  // namespace
}  // namespace stele::sim
