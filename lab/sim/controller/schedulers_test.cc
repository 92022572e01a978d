// The order in which FR-FCFS and FCFS serve hand-written queues.
#include <sim/controller/memory_fixture.h>

namespace stele::sim {
namespace {

memory_config one_bank(const std::string& scheduler) {
  memory_config c = plain_memory();
  c.scheduler = scheduler;
  c.read_latency_ns = c.write_latency_ns = 5;
  c.timing = {{"bank", "precharge", "activate", 13}, {"bank", "activate", "read", 14},
              {"bank", "activate", "write", 14},     {"channel", "read", "read", 5},
              {"channel", "write", "write", 5},      {"channel", "read", "write", 5},
              {"channel", "write", "read", 5}};
  return c;
}

using tokens = std::vector<unsigned>;

// K1
TEST(fr_fcfs, row_hits_pass_older_requests) {
  memory_fixture bed(one_bank("fr-fcfs"));
  bed.read(0, 1), bed.read(0, 2), bed.read(0, 1, 1), bed.read(0, 2, 1), bed.read(0, 1, 2);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 2, 4, 1, 3}));
  EXPECT_EQ(bed.statistics().row_hits, 3u);
}

TEST(fr_fcfs, among_banks_data_comes_before_rows_and_age_before_youth) {
  memory_fixture bed(one_bank("fr-fcfs"));
  bed.read(0, 1);
  bed.run();
  bed.read(1, 1), bed.read(0, 1, 1), bed.read(0, 2), bed.read(2, 1);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 2, 1, 4, 3}));
}

TEST(fr_fcfs, after_the_starvation_limit_the_oldest_is_served) {
  for (const unsigned limit : {1u, 3u}) {
    memory_config c = one_bank("fr-fcfs");
    c.starvation_limit = limit;
    memory_fixture bed(c);
    bed.read(0, 1);
    bed.run();
    bed.read(0, 2);
    for (unsigned column = 1; column <= 6; ++column) bed.read(0, 1, column);
    bed.run();
    EXPECT_EQ(bed.order[limit + 1], 1u) << limit;
  }
}

// Read 1 is passed by two hits, then read 4, which is the oldest after it, by two others.
TEST(fr_fcfs, every_oldest_request_can_be_passed_as_often_as_the_limit) {
  memory_config c = one_bank("fr-fcfs");
  c.starvation_limit = 2;
  memory_fixture bed(c);
  bed.read(0, 1);
  bed.run();
  bed.read(0, 2);
  for (const std::uint32_t row : {1, 2})
    for (unsigned column = 1; column <= 3; ++column) bed.read(0, row, column);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 2, 3, 1, 5, 6, 4, 7}));
}

TEST(fr_fcfs, hits_of_other_banks_count_towards_the_limit_too) {
  memory_config c = one_bank("fr-fcfs");
  c.starvation_limit = 2;
  memory_fixture bed(c);
  bed.read(0, 1), bed.read(1, 1);
  bed.run();
  bed.read(0, 2);
  for (unsigned column = 1; column <= 12; ++column) bed.read(1, 1, column);
  bed.run();
  EXPECT_EQ(bed.order[4], 2u);
}

TEST(fr_fcfs, reads_come_first_until_writes_fill_their_queue) {
  memory_config c = one_bank("fr-fcfs");
  c.write_queue_entries = 4;
  c.write_drain_from = 0.75;
  c.write_drain_to = 0.25;
  memory_fixture few(c), many(c);
  for (memory_fixture* bed : {&few, &many}) bed->read(1, 1), bed->run();
  few.write(0, 1), few.write(0, 1, 1), few.read(1, 1, 1), few.read(1, 1, 2);
  few.run();
  EXPECT_EQ(few.order, (tokens{0, 3, 4, 1, 2}));
  // A third write starts a drain, which ends with one write left; that one waits for the reads.
  many.write(0, 1), many.write(0, 1, 1), many.write(0, 1, 2), many.read(1, 1, 1),
      many.read(1, 1, 2);
  many.run();
  EXPECT_EQ(many.order, (tokens{0, 1, 2, 4, 5, 3}));
}

// The write's row is opened at 0 and written at 14, though a read of another row comes meanwhile.
// Without the rule, the read would close the row and be served first, at 32, and the write's row
// would be opened twice.
TEST(fr_fcfs, a_row_opened_for_a_request_is_not_closed_before_it_is_served) {
  for (const picoseconds arrival : {picoseconds{13'999}, picoseconds{14'000}}) {
    memory_fixture bed(one_bank("fr-fcfs"));
    bed.write(0, 1);
    bed.run_until(arrival);
    bed.read(0, 2);
    bed.run();
    EXPECT_EQ(bed.completed[0], 14'000u + 5'000u);
    EXPECT_EQ(bed.completed[1], 14'000u + 13'000u + 14'000u + 5'000u);
    EXPECT_EQ(bed.statistics().activates, 2u);
  }
}

// The row opened at 100 may be written at 114, when a read of an open row could be served too: the
// write comes first, because it holds its bank until then. Opened at 101, it comes after that read.
TEST(fr_fcfs, a_row_opened_for_a_request_is_used_as_soon_as_it_may) {
  for (const bool later : {false, true}) {
    memory_fixture bed(one_bank("fr-fcfs"));
    bed.read(1, 1);
    bed.run();
    bed.run_until(later ? 101'000 : 100'000);
    bed.write(0, 1);
    bed.run_until(104'000);
    for (unsigned column = 1; column <= 4; ++column) bed.read(1, 1, column);
    bed.run();
    EXPECT_EQ(bed.order, later ? (tokens{0, 2, 3, 4, 1, 5}) : (tokens{0, 2, 3, 1, 4, 5}));
  }
}

// The read's row is opened at 0 and read at 14. A write opens a row meanwhile; it needs 14 ns for
// it, and 5 ns after the read.
TEST(fr_fcfs, writes_are_served_while_no_read_waits_for_its_row) {
  for (const auto& [arrival, written] : {std::pair<picoseconds, picoseconds>{1, 19'000},
                                         {5'000, 19'000},
                                         {5'001, 19'001},
                                         {13'999, 27'999}}) {
    memory_fixture bed(one_bank("fr-fcfs"));
    bed.read(0, 1);
    bed.run_until(arrival);
    bed.write(1, 1);
    bed.run();
    EXPECT_EQ(bed.completed[0], 14'000u + 5'000u);
    EXPECT_EQ(bed.completed[1], written + 5'000u) << arrival;
  }
}

// Rows stay open for 100 ns. The third write begins the drain while a read waits for bank 0 to
// close: bank 1 closes for the writes, and bank 0 only after them.
TEST(fr_fcfs, a_drain_begins_with_the_write_that_fills_the_queue) {
  memory_config c = one_bank("fr-fcfs");
  c.write_queue_entries = 8;
  c.write_drain_from = 0.375;
  c.write_drain_to = 0;
  c.timing.push_back({"bank", "activate", "precharge", 100});
  memory_fixture bed(c);
  bed.read(0, 1);
  bed.run_until(50'000);
  bed.read(1, 1);
  bed.run_until(70'000);
  bed.write(1, 2), bed.write(1, 2, 1);
  bed.run_until(80'000);
  bed.read(0, 2);
  bed.run_until(90'000);
  bed.write(1, 2, 2);
  bed.run();
  const auto closed = std::ranges::find(bed.commands, command::precharge, &command_report::what);
  ASSERT_NE(closed, bed.commands.end());
  EXPECT_EQ(closed->bank, 1u);
  EXPECT_EQ(closed->at, 150'000u);
  EXPECT_EQ(bed.order, (tokens{0, 1, 2, 3, 5, 4}));
}

TEST(fr_fcfs, writes_drain_without_new_traffic) {
  memory_fixture bed(one_bank("fr-fcfs"));
  bed.write(0, 1);
  bed.run();
  EXPECT_EQ(bed.order, tokens{0});
}

TEST(fr_fcfs, writes_to_one_line_keep_their_order) {
  memory_fixture bed(one_bank("fr-fcfs"));
  bed.write(0, 1), bed.write(0, 2), bed.write(0, 1), bed.write(0, 1), bed.write(0, 2);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 2, 3, 1, 4}));
}

// --- the age limit ---

// Bank 1 has a row with 200 hits of one kind, one each 5 ns, which are served from 14 ns on. A
// request of the other kind comes to bank 0 at 20 ns. From 220 ns on it is at the limit: after the
// hit at 219 its row opens at 224, the first time at which the limit is looked at; its column
// command comes at 239, 5 ns after the hit at 234. Without the limit its row opens at the last hit.
TEST(age, limits_the_wait_of_a_kind_behind_the_other) {
  for (const access kind : {access::read, access::write})
    for (const double limit_ns : {200, 0}) {
      memory_config c = one_bank("fr-fcfs");
      c.age_limit_ns = limit_ns;
      c.write_drain_from = kind == access::read ? 0.02 : 1;  // from one write on
      c.write_drain_to = kind == access::read ? 0 : 0.5;
      memory_fixture bed(c);
      const access hits = kind == access::read ? access::write : access::read;
      unsigned late = 0;
      for (unsigned n = 0; n < 200; ++n) {
        bed.run_until(n * 5'000);
        bed.submit(hits, bed.address(1, 1, n % 16));
        if (n == 4) late = bed.submit(kind, bed.address(0, 1));
      }
      bed.run();
      EXPECT_EQ(bed.completed[late], limit_ns == 0 ? 1'009'000u + 14'000 + 5'000 : 244'000u)
          << limit_ns << (kind == access::read ? ": a read" : ": a write");
      EXPECT_EQ(bed.completed.size(), 201u);
    }
}

// Eight banks, and a read each 4 ns, of which each takes 5 ns of the bus; a 64th are writes. No
// request waits longer than the limit and the service of the 128 that may be queued before it, a
// row's cycle each. Without the limit a write waits until the queue of writes is full.
TEST(age, bounds_the_wait_of_every_queued_request) {
  const auto longest_ns = [](double limit_ns) {
    memory_config c = one_bank("fr-fcfs");
    c.banks = 8;
    c.starvation_limit = 1 << 20;
    c.write_drain_from = 1, c.write_drain_to = 0.9;
    c.age_limit_ns = limit_ns;
    memory_fixture bed(c);
    std::uint64_t x = 5;
    for (picoseconds at = 0; at < 100'000'000; at += 4'000) {
      bed.run_until(at);
      x = x * 6364136223846793005u + 1442695040888963407u;
      const access kind = x >> 58 == 0 ? access::write : access::read;
      const std::uint64_t address = bed.address(x >> 33 & 7, x >> 50 & 3, x >> 40 & 15);
      if (bed.memory->has_room({.address = address, .kind = kind})) bed.submit(kind, address);
    }
    bed.run();
    const memory_statistics s = bed.statistics();
    return std::max(s.read_wait.max_ps, s.write_wait.max_ps) / 1000;
  };
  const double bound_ns = 500 + 128 * (13 + 14 + 5);
  EXPECT_LT(longest_ns(500), bound_ns);
  EXPECT_GT(longest_ns(0), 2 * bound_ns);
}

// A row that another request needs is closed for the older one.
TEST(age, is_that_of_the_oldest_request_of_either_kind) {
  memory_config c = one_bank("fr-fcfs");
  c.age_limit_ns = 1;
  memory_fixture bed(c);
  bed.read(0, 1), bed.read(0, 2), bed.read(0, 1, 1), bed.write(0, 2, 1);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 1, 2, 3}));
}

// While the cells of its bank are written, the oldest request holds up no other bank.
TEST(age, leaves_other_banks_to_others_until_the_bank_is_ready) {
  memory_config c = one_bank("fr-fcfs");
  c.technology = "stt-mram", c.write_pulse_ns = 1000;
  c.age_limit_ns = 100;
  memory_fixture bed(c);
  bed.write(0, 1), bed.write(0, 2);
  bed.run_until(200'000);
  const unsigned read = bed.read(1, 1);
  bed.run();
  EXPECT_EQ(bed.completed[read], 200'000u + 14'000u + 5'000u);
  // The second write waits for the pulse of the first, then opens its row.
  EXPECT_EQ(bed.completed[1], 14'000u + 1'005'000u + 13'000u + 14'000u + 1'005'000u);
}

TEST(fcfs, serves_in_order_of_arrival) {
  memory_fixture bed(one_bank("fcfs"));
  bed.read(0, 1), bed.read(0, 2), bed.write(0, 1, 1), bed.read(1, 1), bed.read(0, 1, 2);
  bed.run();
  EXPECT_EQ(bed.order, (tokens{0, 1, 2, 3, 4}));
  // only the last; for the write the row had to be changed
  EXPECT_EQ(bed.statistics().row_hits, 1u);
}

TEST(schedulers, an_unknown_name_is_refused_with_the_known) {
  memory_config c = plain_memory();
  c.scheduler = "fastest";
  event_queue events;
  const auto made = make_memory(events, c);
  ASSERT_FALSE(made);
  for (const scheduler_kind& k : scheduler_kinds())
    EXPECT_NE(made.error().message.find(k.name), std::string::npos);
}

}  // namespace
}  // namespace stele::sim
