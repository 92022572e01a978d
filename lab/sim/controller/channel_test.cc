// The times of a channel for known requests: latencies, forwarding, room in queues, refresh, idle
// time, wear.
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/pcm.h>

namespace stele::sim {
namespace {

// Precharge 13 ns, activate 14 ns, read 20 ns, write 18 ns and 7 ns more into the cells.
memory_config timed() {
  memory_config c = plain_memory();
  c.technology = "stt-mram";
  c.timing = {{"bank", "precharge", "activate", 13},
              {"bank", "activate", "read", 14},
              {"bank", "activate", "write", 14}};
  c.read_latency_ns = 20;
  c.write_latency_ns = 18;
  c.write_pulse_ns = 7;
  return c;
}

TEST(channel, reads_miss_hit_and_conflict) {
  memory_fixture bed(timed());
  const unsigned miss = bed.read(0, 1);
  bed.run();
  EXPECT_EQ(bed.completed[miss], 34'000u);
  bed.run_until(100'000);
  const unsigned hit = bed.read(0, 1, 3);
  bed.run_until(200'000);
  EXPECT_EQ(bed.completed[hit], 120'000u);
  const unsigned conflict = bed.read(0, 2);
  bed.run();
  EXPECT_EQ(bed.completed[conflict], 200'000u + 47'000u);
  const memory_statistics s = bed.statistics();
  EXPECT_EQ(s.row_misses, 1u);
  EXPECT_EQ(s.row_hits, 1u);
  EXPECT_EQ(s.row_conflicts, 1u);
  EXPECT_EQ(s.activates, 2u);
  EXPECT_EQ(s.precharges, 1u);
  EXPECT_EQ(s.read_wait.sum_ps, 14'000u + 27'000u);
  EXPECT_EQ(s.read_latency.max_ps, 47'000u);
  EXPECT_EQ(s.bytes, 3 * 64u);
  EXPECT_DOUBLE_EQ(s.read_latency.mean_ns(), 101.0 / 3);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.5), 34, 0.34);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.34), 34, 0.34);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.33), 20, 0.20);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.99), 47, 0.47);
  EXPECT_EQ(s.bank_busy_ps, 34'000u + 20'000u + 34'000u);  // closing takes 13 ns, not counted
}

// The second read closes the first one's row at 14 ns, opens its own at 27 and is served at 41.
TEST(channel, a_bank_is_busy_once_however_many_requests_it_serves) {
  memory_fixture bed(timed());
  bed.read(0, 1), bed.read(0, 2), bed.write(1, 1);
  bed.run();
  EXPECT_EQ(bed.events.now(), 61'000u);
  const memory_statistics s = bed.statistics();
  EXPECT_EQ(s.read_wait.sum_ps, 14'000u + 41'000u);
  EXPECT_EQ(s.bank_busy_ps, 61'000u + (14'000u + 25'000u));
}

TEST(statistics, what_came_before_is_subtracted) {
  memory_statistics s;
  for (const picoseconds span : {1, 63, 64, 127, 128, 1'000'000})
    s.read_latency.add(span), s.read_latencies.add(span);
  const memory_statistics before = s;
  for (const picoseconds span : {5000, 7000, 9000})
    s.read_latency.add(span), s.read_latencies.add(span);
  EXPECT_EQ(s.read_latencies.percentile_ns(0.1), 0.001);
  EXPECT_NEAR(s.read_latencies.percentile_ns(1), 1000, 10);
  s.subtract(before);
  EXPECT_EQ(s.read_latency.mean_ns(), 7);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.1), 5, 0.05);
  EXPECT_NEAR(s.read_latencies.percentile_ns(0.5), 7, 0.07);
  EXPECT_NEAR(s.read_latencies.percentile_ns(1), 9, 0.09);
  EXPECT_EQ(time_histogram().percentile_ns(0.5), 0);
  const std::vector<time_class> left = s.read_latencies.classes();
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left[0], (time_class{4992, 5056, 1}));  // 64 ps wide: a 64th of 4096
  EXPECT_TRUE(left[2].from <= 9000 && 9000 < left[2].below);
}

TEST(statistics, a_queue_is_as_long_as_it_was_at_any_moment_since) {
  queue_length q;
  EXPECT_EQ(q.longest_since(0), 0u);
  q.grow(), q.grow(), q.grow();
  q.shrink(10), q.shrink(20);  // 3 entries until 10, 2 until 20, then 1
  EXPECT_EQ(q.longest_since(0), 3u);
  EXPECT_EQ(q.longest_since(10), 3u);
  EXPECT_EQ(q.longest_since(11), 2u);
  EXPECT_EQ(q.longest_since(20), 2u);
  EXPECT_EQ(q.longest_since(21), 1u);
  q.grow();
  EXPECT_EQ(q.longest_since(30), 2u);
  q.shrink(40);
  EXPECT_EQ(q.longest_since(15), 2u);
  q.shrink(50);
  EXPECT_EQ(q.longest_since(41), 1u);
  EXPECT_EQ(q.longest_since(51), 0u);
}

// Of two channels, the longer one. What waits for room in the queue counts; a read that a queued
// write serves does not wait.
TEST(channel, the_longest_queue_has_what_waits_in_front_of_it) {
  memory_config c = timed();
  c.channels = 2;
  c.read_queue_entries = 2;
  memory_fixture bed(c);
  const auto at = [&](unsigned channel, std::uint32_t row) {
    return bed.memory->address_map().address_of({channel, 0, row}, 0);
  };
  for (std::uint32_t row = 1; row <= 5; ++row) bed.submit(access::read, at(1, row));
  bed.submit(access::read, at(0, 1)), bed.submit(access::read, at(0, 2));
  for (int i = 0; i < 3; ++i) bed.submit(access::write, at(0, 9));
  bed.submit(access::read, at(0, 9));
  EXPECT_EQ(bed.memory->longest_queue(access::read, 0), 5u);
  EXPECT_EQ(bed.memory->longest_queue(access::write, 0), 3u);
  bed.run();
  EXPECT_EQ(bed.memory->longest_queue(access::read, 0), 5u);
  EXPECT_EQ(bed.memory->longest_queue(access::read, 14'001), 4u);  // the first was served at 14 ns
  EXPECT_EQ(bed.memory->longest_queue(access::write, bed.events.now() + 1), 0u);
}

TEST(channel, writes_are_told_when_the_cells_hold_them_and_the_bank_is_busy_until_then) {
  memory_fixture bed(timed());
  const unsigned first = bed.write(0, 1), same_row = bed.write(0, 1, 1),
                 elsewhere = bed.write(1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[first], 14'000u + 25'000u);
  EXPECT_EQ(bed.written[same_row].started, 39'000u);
  EXPECT_EQ(bed.completed[same_row], 39'000u + 25'000u);
  EXPECT_EQ(bed.completed[elsewhere], 39'000u);
  EXPECT_EQ(bed.written[first].persisted, bed.completed[first]);
  const memory_statistics s = bed.statistics();
  EXPECT_NEAR(s.write_latencies.percentile_ns(0.5), 39, 0.39);
  EXPECT_NEAR(s.write_latencies.percentile_ns(0.99), 64, 0.64);
}

// The second write hits the row. Closing it takes 7 ns more, closing a row that was read does not.
TEST(channel, a_written_row_is_written_to_the_cells_when_it_closes) {
  memory_config c = timed();
  c.write_back_rows = true;
  memory_fixture bed(c);
  const unsigned first = bed.write(0, 1);
  bed.run_until(100'000);
  const unsigned same_row = bed.write(0, 1, 1);
  bed.run_until(200'000);
  const unsigned after_write = bed.read(0, 2);
  bed.run_until(300'000);
  const unsigned after_read = bed.read(0, 3);
  bed.run();
  EXPECT_EQ(bed.completed[first], 14'000u + 18'000u);
  EXPECT_EQ(bed.completed[same_row], 100'000u + 18'000u);
  EXPECT_EQ(bed.written[same_row].persisted, bed.completed[same_row]);
  EXPECT_EQ(bed.completed[after_write], 200'000u + 7'000u + 47'000u);
  EXPECT_EQ(bed.completed[after_read], 300'000u + 47'000u);
  EXPECT_EQ(bed.statistics().bank_busy_ps, 32'000u + 18'000u + 7'000u + 34'000u + 34'000u);
}

TEST(channel, a_volatile_write_is_told_when_it_is_in_the_device) {
  memory_config c = timed();
  c.write_pulse_ns = 0;
  memory_fixture bed(c);
  const unsigned w = bed.write(0, 1);
  bed.run();
  EXPECT_EQ(bed.completed[w], 32'000u);
}

TEST(channel, a_closed_page_makes_every_access_a_miss) {
  memory_config c = timed();
  c.open_page = false;
  memory_fixture bed(c);
  bed.read(0, 1);
  bed.run_until(100'000);
  const unsigned other = bed.read(0, 2);
  bed.run();
  EXPECT_EQ(bed.completed[other], 134'000u);
  bed.run_until(200'000);
  const unsigned both[] = {bed.read(0, 3),
                           bed.read(0, 3, 1)};  // queued together: one activate serves both
  bed.run();
  EXPECT_EQ(bed.completed[both[1]], 234'000u);
  EXPECT_EQ(bed.statistics().precharges, 3u);
}

TEST(channel, a_read_is_served_from_a_queued_write_to_its_line) {
  memory_fixture bed(timed());
  const unsigned w = bed.write(0, 1), r = bed.read(0, 1), other = bed.read(0, 1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[r], 0u);
  EXPECT_GT(bed.completed[other], 0u);
  EXPECT_GT(bed.completed[w], 0u);
  const memory_statistics s = bed.statistics();
  EXPECT_EQ(s.forwarded_reads, 1u);
  EXPECT_EQ(s.reads, 1u);
}

// Two of five writes fit.
memory_config with_short_queues() {
  memory_config c = timed();
  c.read_queue_entries = c.write_queue_entries = 2;
  c.write_drain_from = 1;
  c.write_drain_to = 0.5;
  return c;
}

TEST(channel, what_does_not_fit_waits_in_front_in_order) {
  memory_fixture bed(with_short_queues());
  for (std::uint32_t row = 1; row <= 5; ++row) bed.write(0, row);
  bed.run();
  for (unsigned i = 1; i < 5; ++i) EXPECT_GT(bed.written[i].started, bed.written[i - 1].started);
  EXPECT_EQ(bed.memory->outstanding(), 0u);
}

TEST(channel, a_read_does_not_wait_for_writes_that_do_not_fit) {
  memory_fixture bed(with_short_queues());
  for (std::uint32_t row = 1; row <= 5; ++row) bed.write(0, row);
  EXPECT_FALSE(bed.memory->has_room({bed.address(1, 1), access::write}));
  EXPECT_TRUE(bed.memory->has_room({bed.address(1, 1), access::read}));
  const unsigned read = bed.read(1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[read], 34'000u);
}

TEST(channel, a_write_does_not_wait_for_reads_that_do_not_fit) {
  memory_fixture bed(with_short_queues());
  for (std::uint32_t row = 1; row <= 5; ++row) bed.read(0, row);
  const unsigned write = bed.write(1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[write], 39'000u);
}

// The last write of a line gives its content to a read that comes after it, and to one that has
// not fitted before it.
TEST(channel, a_read_is_served_from_a_write_that_did_not_fit) {
  memory_fixture bed(with_short_queues());
  for (std::uint32_t row = 1; row <= 4; ++row) bed.write(0, row);
  const unsigned same_line = bed.read(0, 4), other = bed.read(0, 5);
  for (std::uint32_t row = 6; row <= 7; ++row) bed.read(0, row);
  const unsigned held_back = bed.read(0, 8), write = bed.write(0, 8);
  bed.run();
  EXPECT_EQ(bed.completed[same_line], 0u);
  EXPECT_GT(bed.completed[other], 0u);
  EXPECT_LT(bed.completed[held_back], bed.written[write].started);
  EXPECT_EQ(bed.statistics().forwarded_reads, 2u);
}

TEST(channel, has_room_in_the_queue_of_the_kind_and_of_the_bank) {
  memory_config c = timed();
  c.bank_queue_entries = 1;
  c.read_queue_entries = 2;
  memory_fixture bed(c);
  const auto room = [&](access kind, unsigned bank) {
    return bed.memory->has_room({.address = bed.address(bank, 5), .kind = kind});
  };
  bed.write(1, 1), bed.read(2, 1);
  EXPECT_TRUE(room(access::read, 1) && room(access::write, 0));
  EXPECT_FALSE(room(access::write, 1));
  bed.read(2, 2);
  EXPECT_TRUE(room(access::write, 2));
  EXPECT_FALSE(room(access::read, 3));
}

TEST(channel, k_banks_write_k_times_as_fast_until_the_bus_binds) {
  const auto time_of = [](unsigned banks) {
    memory_config c = plain_memory();
    c.technology = "stt-mram";
    c.banks = 16;
    c.write_pulse_ns = 100;
    c.timing = {{"channel", "write", "write", 20}};
    memory_fixture bed(c);
    for (unsigned i = 0; i < 40 * banks; ++i) bed.write(i % banks, i / banks + 1);
    bed.run();
    return static_cast<double>(bed.events.now()) / banks;
  };
  const double one = time_of(1);
  EXPECT_EQ(one, 40 * 100'000.0);
  for (const unsigned k : {2u, 4u}) EXPECT_NEAR(one / time_of(k), k, 0.05 * k) << k;
  EXPECT_NEAR(one / time_of(8), 5, 0.1);  // limited to a write every 20 ns
  EXPECT_NEAR(one / time_of(16), 5, 0.1);
}

// --- refresh ---

memory_config refreshed() {
  memory_config c = timed();
  c.technology = "dram";
  c.write_pulse_ns = 0;
  c.ranks = 2;
  c.refresh_interval_ns = 1000;
  c.refresh_time_ns = 100;
  c.timing.push_back({"rank", "precharge", "refresh", 13});
  return c;
}

TEST(refresh, a_due_refresh_closes_the_rows_and_holds_its_rank) {
  memory_fixture bed(refreshed());
  bed.read(0, 1);
  bed.run_until(999'999);
  const unsigned before = bed.read(0, 1);
  bed.run_until(1'000'000);
  const unsigned behind = bed.read(0, 1, 1), other_rank = bed.read(4, 1);
  bed.run();
  EXPECT_EQ(bed.completed[before], 1'019'999u);
  EXPECT_EQ(bed.completed[behind],
            1'000'000u + 13'000u + 100'000u + 34'000u);  // close, refresh, open, read
  EXPECT_EQ(bed.completed[other_rank], 1'000'000u + 100'000u + 34'000u);  // no row was open
  EXPECT_EQ(bed.statistics().refreshes, 2u);
}

TEST(refresh, blocks_until_its_time_and_not_longer) {
  for (const picoseconds early : {1, 0}) {
    memory_fixture bed(refreshed());
    bed.run_until(1'100'000 - early);
    const unsigned r = bed.read(0, 1);
    bed.run();
    EXPECT_EQ(bed.completed[r], 1'100'000u + 34'000u) << early;
  }
}

// The first of two ranks is due half an interval before the second: at 500 ns; with a clock of 3 ns
// 498 before the 999 of the second, in whole cycles.
TEST(refresh, staggered_ranks_are_due_in_turn) {
  for (const auto& [clock_ns, bank, due] : {std::tuple{0.0, 0u, 500'000u},
                                            {0.0, 4u, 1'000'000u},
                                            {3.0, 0u, 501'000u},
                                            {3.0, 4u, 999'000u}})
    for (const unsigned early : {1u, 0u}) {
      memory_config c = refreshed();
      c.staggered_refresh = true;
      c.clock_ns = clock_ns;
      memory_fixture bed(c);
      bed.read(bank, 1);
      bed.run_until(due - early);
      const unsigned r = bed.read(bank, 1);
      bed.run();
      const picoseconds latency = bed.completed[r] - (due - early);
      EXPECT_EQ(latency > 100'000u, early == 0) << clock_ns << ' ' << bank << ' ' << latency;
    }
}

TEST(refresh, idle_time_costs_nothing_and_is_made_up_for) {
  memory_fixture bed(refreshed());
  bed.read(0, 1);
  bed.run();
  EXPECT_TRUE(bed.events.empty());
  bed.run_until(1'000'000'500'000);  // after one second
  EXPECT_TRUE(bed.events.empty());
  const unsigned r = bed.read(0, 1);
  bed.run();
  EXPECT_EQ(bed.completed[r], 1'000'000'500'000u + 34'000u);  // the refreshes closed its row
  const memory_statistics s = bed.statistics();
  EXPECT_EQ(s.refreshes, 2 * 1'000'000u);
  EXPECT_EQ(s.precharges, 1u);
}

TEST(refresh, a_saturated_rank_is_refreshed_on_time) {
  memory_config c = refreshed();
  c.ranks = 1;
  memory_fixture bed(c);
  for (unsigned i = 0; i < 2000; ++i) bed.read(i % 4, i / 64 + 1, i % 16);
  bed.run();
  EXPECT_EQ(bed.completed.size(), 2000u);
  EXPECT_EQ(bed.statistics().refreshes, bed.events.now() / 1'000'000);
}

// A row that closes by itself, at 1034 ns, is open until then, and the rules count from then on.
TEST(refresh, waits_for_rows_that_close_by_themselves) {
  for (const char* level : {"", "bank", "rank"}) {
    memory_config c = refreshed();
    c.ranks = 1;
    c.open_page = false;
    c.timing.back() = {"bank", "read", "precharge", 50};
    c.timing.erase(c.timing.begin());  // from a precharge to an activate: nothing else follows one
    if (*level != 0) c.timing.push_back({level, "precharge", "refresh", 13});
    memory_fixture bed(c);
    bed.run_until(970'000);
    bed.read(0, 1);
    bed.run_until(1'000'000);
    const unsigned behind = bed.read(1, 1);
    bed.run();
    const picoseconds closed = 1'034'000 + (*level != 0 ? 13'000u : 0u);
    EXPECT_EQ(bed.completed[behind], closed + 100'000u + 34'000u) << level;
  }
}

// Two groups of two banks: the refresh at 1000 ns is of the banks 0 and 2, that at 2000 ns of 1
// and 3.
memory_config refreshed_by_number() {
  memory_config c = refreshed();
  c.ranks = 1, c.bank_groups = c.banks = 2;
  c.refresh = "same-bank";
  c.timing.back() = {"bank", "precharge", "refresh", 13};
  c.timing.push_back({"rank", "refresh", "activate", 30});
  return c;
}

TEST(refresh, of_the_same_banks_of_all_groups_lets_the_others_work) {
  memory_fixture bed(refreshed_by_number());
  bed.read(0, 1), bed.read(1, 1);
  bed.run_until(1'000'000);
  const unsigned closed = bed.read(2, 1), open = bed.read(1, 1, 1), behind = bed.read(0, 1, 1),
                 opened = bed.read(3, 1);
  bed.run();
  EXPECT_EQ(bed.completed[open], 1'020'000u);
  EXPECT_EQ(bed.completed[opened],
            1'034'000u);  // before the refresh, which waits for bank 0 to close
  EXPECT_EQ(bed.completed[behind], 1'000'000u + 13'000u + 100'000u + 34'000u);
  EXPECT_EQ(bed.completed[closed], bed.completed[behind]);
  bed.run_until(2'000'000);
  const unsigned other = bed.read(0, 2), due = bed.read(3, 1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[other],
            2'000'000u + 13'000u + 30'000u + 34'000u);  // 30 ns after the refresh
  EXPECT_EQ(bed.completed[due], 2'000'000u + 13'000u + 100'000u + 34'000u);
  EXPECT_EQ(bed.statistics().refreshes, 2u);
}

TEST(refresh, of_the_same_banks_goes_on_in_turn_after_idle_time) {
  for (const unsigned intervals : {3, 1000, 1001}) {
    memory_fixture bed(refreshed_by_number());
    for (unsigned bank = 0; bank < 4; ++bank) bed.read(bank, 1);
    bed.run();
    bed.run_until(intervals * 1'000'000);
    const unsigned number = intervals % 2 == 1 ? 0 : 1;
    const unsigned held = bed.read(number, 1), free = bed.read(1 - number, 1);
    bed.run();
    EXPECT_EQ(bed.completed[held], intervals * 1'000'000 + 134'000u) << intervals;
    EXPECT_EQ(bed.completed[free], intervals * 1'000'000 + 64'000u) << intervals;
    EXPECT_EQ(bed.statistics().refreshes, intervals);
    EXPECT_EQ(bed.statistics().precharges, 4u);
  }
}

// --- wear and retention ---

// D8
TEST(wear, writes_are_counted_by_bank_line_and_class) {
  memory_config c = timed();
  c.technology = "stt-mram", c.endurance_writes = 1e6;
  memory_fixture bed(c);
  const std::uint64_t records = bed.address(1, 5), commit = bed.address(3, 7);
  ASSERT_TRUE(bed.memory->set_ranges({{records, records + 64, commit, commit + 64}}));
  for (int i = 0; i < 3; ++i) bed.write(2, 5);
  for (const unsigned bank : {2, 1, 3}) bed.write(bank, bank == 2 ? 6 : bank == 1 ? 5 : 7);
  bed.write(3, 7);
  bed.run();
  EXPECT_EQ(bed.statistics().bank_writes, (std::vector<std::uint64_t>{0, 1, 4, 2}));
  const wear_counts w = bed.memory->wear();
  EXPECT_EQ(w.data, 4u);
  EXPECT_EQ(w.log_records, 1u);
  EXPECT_EQ(w.commit_lines, 2u);
  EXPECT_EQ(w.lines, 4u);
  EXPECT_EQ(w.most_writes, 3u);
  EXPECT_EQ(w.most_worn_line, bed.address(2, 5));
}

TEST(wear, is_not_counted_where_cells_do_not_wear_out) {
  memory_fixture bed(timed());
  bed.write(2, 5);
  bed.run();
  EXPECT_EQ(bed.memory->wear().data, 0u);
}

// D5
TEST(retention, a_log_line_that_outlives_its_retention_is_refused) {
  memory_config c = dp2_memory("strict");
  c.log_retention_s = 1e2;
  memory_fixture bed(c);
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  EXPECT_EQ(bed.memory->trusted_log_line(64, 0).error().code, errc::not_found);
  EXPECT_EQ(bed.memory->trusted_log_line(8192, 0).error().code, errc::invalid_argument);
  bed.submit(access::write, 64);
  bed.run();
  const picoseconds written = bed.completed[0], lasts = 100'000'000'000'000;
  EXPECT_EQ(*bed.memory->trusted_log_line(64, written + lasts), written);
  EXPECT_FALSE(bed.memory->expired(64, written + lasts));
  EXPECT_TRUE(bed.memory->expired(64, written + lasts + 1));
  const auto refused = bed.memory->trusted_log_line(64, written + lasts + 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("truncate sooner"), std::string::npos);
  EXPECT_FALSE(bed.memory->expired(8192, never - 1));
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  EXPECT_EQ(bed.memory->trusted_log_line(64, written).error().code, errc::not_found);
}

// --- energy ---

// K11. Each count differs from the others, so that none can stand for another.
TEST(energy, is_bits_times_picojoules_of_each_part_and_a_row_hit_reads_no_array) {
  memory_fixture bed(machine_of("kiln").nonvolatile_memory);
  const auto each_alone = [&](access kind, std::uint32_t row, unsigned count) {
    for (unsigned i = 0; i < count; ++i) bed.submit(kind, bed.address(0, row, i)), bed.run();
  };
  each_alone(access::read, 1, 5);   // a miss and 4 hits
  each_alone(access::write, 2, 4);  // a conflict and 3 hits
  each_alone(access::read, 3, 2);   // a conflict and a hit
  const memory_statistics s = bed.statistics();
  ASSERT_EQ(s.reads, 7u);
  ASSERT_EQ(s.writes, 4u);
  ASSERT_EQ(s.activates, 3u);
  const memory_energy e = bed.memory->energy(bed.events.now());
  EXPECT_DOUBLE_EQ(e.read_pj, 7 * 512 * 0.93);
  EXPECT_DOUBLE_EQ(e.write_pj, 4 * 512 * (1.02 + 2.89));
  EXPECT_DOUBLE_EQ(e.activate_pj, 3 * 512 * 1.00);
  EXPECT_EQ(e.refresh_pj + e.background_pj, 0);
  EXPECT_DOUBLE_EQ(e.total_pj(), 3333.12 + 2088.96 + 1536 + 5918.72);
  each_alone(access::read, 3, 1);  // one more hit
  EXPECT_DOUBLE_EQ(bed.memory->energy(bed.events.now()).total_pj() - e.total_pj(), 512 * 0.93);
}

// Two ranks of two devices of 1.5 V. Rows close at refreshes only: rank 0 is open from 0 until the
// refresh at 1000 ns closes it, rank 1 never. tRAS 30, tRP 13: tRC is 43 ns, the longer one.
TEST(energy, of_currents_is_that_of_each_command_above_standby) {
  memory_config c = refreshed();
  c.timing.push_back({"bank", "activate", "precharge", 30});
  c.timing.push_back({"bank", "activate", "activate", 40});
  c.timing.push_back({"channel", "read", "read", 4});
  c.timing.push_back({"channel", "write", "write", 5});
  c.vdd_v = 1.5, c.devices = 2;
  c.idd0_ma = 50, c.idd2n_ma = 30, c.idd3n_ma = 40, c.idd4r_ma = 140, c.idd4w_ma = 130;
  c.idd5b_ma = 240;
  memory_fixture bed(c);
  bed.read(0, 1), bed.read(0, 1, 1), bed.write(1, 1);
  bed.run();
  bed.run_until(500'000);
  EXPECT_DOUBLE_EQ(bed.memory->energy(500'000).background_pj, 3 * (40 + 30) * 500.0);
  bed.run_until(1'500'000);
  const memory_energy e = bed.memory->energy(1'500'000);
  EXPECT_DOUBLE_EQ(e.activate_pj, 2 * 3 * (50 * 43.0 - 40 * 30 - 30 * 13));
  EXPECT_DOUBLE_EQ(e.read_pj, 2 * 3 * (140 - 40) * 4.0);
  EXPECT_DOUBLE_EQ(e.write_pj, 1 * 3 * (130 - 40) * 5.0);
  EXPECT_DOUBLE_EQ(e.refresh_pj, 2 * 3 * (240 - 40) * 100.0);
  EXPECT_DOUBLE_EQ(e.background_pj, 3 * (40 * 1000.0 + 30 * 2000.0));
  EXPECT_EQ(bed.statistics().open_ps, 1'000'000u);
}

// A device of four banks draws 10 mA above idd2n with all of them open: 2.5 mA with each. Same-bank
// refreshes close the rows: banks 0 and 2 at 1000 ns, 1 and 3, of which only 1 is open, at 2000 ns.
TEST(energy, of_currents_grows_with_each_open_row_if_idd3n_is_that_of_all) {
  memory_config c = refreshed_by_number();
  c.timing.push_back({"bank", "activate", "precharge", 30});
  c.vdd_v = 1.5, c.devices = 2;
  c.idd0_ma = 35, c.idd2n_ma = 30, c.idd3n_ma = 40, c.idd5b_ma = 36;
  c.idd3n_all_banks = true;
  memory_fixture bed(c);
  bed.read(0, 1), bed.read(1, 1), bed.read(2, 1);
  bed.run();
  bed.run_until(600'000);
  EXPECT_DOUBLE_EQ(bed.memory->energy(600'000).background_pj, 3 * (30 + 3 * 2.5) * 600);
  bed.run_until(2'500'000);
  const memory_energy e = bed.memory->energy(2'500'000);
  EXPECT_EQ(bed.statistics().open_bank_ps, 2 * 1'000'000u + 2'000'000u);
  EXPECT_DOUBLE_EQ(e.background_pj, 3 * (30 * 2500.0 + 2.5 * 4000.0));
  EXPECT_DOUBLE_EQ(e.activate_pj, 3 * 3 * (35 * 43.0 - 32.5 * 30 - 30 * 13));
  EXPECT_DOUBLE_EQ(e.refresh_pj, 2 * 3 * (36 - 30) * 100.0);
}

}  // namespace
}  // namespace stele::sim
