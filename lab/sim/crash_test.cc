// Crashes of small machines with Kiln: the protocol holds, and every planted bug is found.
#include <gtest/gtest.h>
#include <sim/crash_fixture.h>

namespace stele::sim {
namespace {

// K2, K5, K6
TEST(kiln_crash, recovers_to_a_prefix_that_has_every_acknowledged_transaction) {
  kiln_counts done;
  crash_report all;
  for (const machine_config& m : crash_machines())
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto r = crash_machine(m, make_tape({.seed = seed}), {.crashes = 2000, .seed = seed});
      ASSERT_TRUE(r) << m.name << ": " << r.error().message;
      expect_allowed(m.name + ", load of seed " + std::to_string(seed), *r);
      EXPECT_EQ(r->transactions, 300u) << m.name << ": the run is over";
      all.crashes += r->crashes, all.with_pending += r->with_pending,
          all.with_versions += r->with_versions, all.with_copies += r->with_copies;
      done.overflowed_lines += r->done.overflowed_lines,
          done.superseded_written += r->done.superseded_written,
          done.overflow_aborts += r->done.overflow_aborts,
          done.copied_again += r->done.copied_again;
      done.waits_for_older += r->done.waits_for_older,
          done.queue_evictions += r->done.queue_evictions,
          done.queue_aborts += r->done.queue_aborts, done.tag_scans += r->done.tag_scans;
    }
  EXPECT_GT(all.crashes, 20'000u);
  // The runs reached every case of the protocol.
  EXPECT_GT(all.with_pending, 1000u);
  EXPECT_GT(all.with_versions, 1000u);
  EXPECT_GT(all.with_copies, 10u);
  EXPECT_GT(done.overflowed_lines, 10u);
  EXPECT_GT(done.overflow_aborts, 10u);
  EXPECT_GT(done.copied_again, 10u);
  EXPECT_GT(done.superseded_written, 10u);
  EXPECT_GT(done.waits_for_older, 10u);
  EXPECT_GT(done.queue_evictions, 10u);
  EXPECT_GT(done.queue_aborts, 10u);
  EXPECT_GT(done.tag_scans, 10u);
}

// A hang is a run whose threads are not at their end when no event is left.
kiln_counts run_to_end(const machine_config& m, std::span<const std::byte> tape,
                       picoseconds* end = nullptr) {
  auto made = simulation::make(m, *feed::over(tape, m.cores.count * m.cores.threads_per_core), {});
  if (!made) throw std::runtime_error(made.error().message);
  simulation& s = **made;
  while (s.advance(1 << 20)) {
  }
  const auto ended = s.finish();
  EXPECT_TRUE(ended) << m.name << ": " << ended.error().message;
  if (end != nullptr) *end = s.events.now();
  return s.kiln_design->counts;
}

TEST(kiln_run, ends_whatever_fills_the_sets_of_small_caches) {
  kiln_counts done;
  for (machine_config m : crash_machines())
    for (const unsigned cores : {1u, 2u, 4u})
      for (std::uint64_t seed = 1; seed <= 15; ++seed) {
        m.cores.count = cores, m.cores.threads_per_core = 4 / cores;
        const auto tape = make_tape({.transactions = 100, .seed = seed});
        const kiln_counts counts = run_to_end(m, tape);
        EXPECT_EQ(counts.transactions, 100u)
            << m.name << ", " << cores << " cores, load of seed " << seed;
        done.overflow_aborts += counts.overflow_aborts;
        done.copied_again += counts.copied_again;
      }
  // The runs reached both ways out of a set that holds no line to copy for the first time.
  EXPECT_GT(done.overflow_aborts, 100u);
  EXPECT_GT(done.copied_again, 100u);
}

// A plain store may hit a line of a running transaction, whose frame the transaction may need.
TEST(kiln_run, ends_though_plain_stores_hit_the_lines_of_transactions) {
  for (machine_config m : crash_machines())
    for (const unsigned threads : {2u, 4u, 8u})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        m.cores.count = threads == 8 ? 4 : 2, m.cores.threads_per_core = threads / m.cores.count;
        const auto tape = make_tape(
            {.threads = threads, .transactions = 60, .lines = 48, .plain_stores = 6, .seed = seed});
        EXPECT_EQ(run_to_end(m, tape).transactions, 60u)
            << m.name << ", " << threads << " threads, load of seed " << seed;
      }
}

// K3. What a run's queues did, and how long it took.
struct queue_effects {
  std::uint64_t sent_early, waits, aborts, unqueued, scans;
  picoseconds end;
};
queue_effects with_queues(machine_config m, unsigned of_core, unsigned of_l3,
                          std::span<const std::byte> tape) {
  m.l1.persistence_queue_entries = of_core;
  m.l2.persistence_queue_entries = of_core;
  m.l3.persistence_queue_entries = of_l3;
  picoseconds end = 0;
  const kiln_counts c = run_to_end(m, tape, &end);
  EXPECT_EQ(c.transactions, 100u) << m.name << ", queues of " << of_core << " and " << of_l3;
  return {c.queue_evictions, c.queue_waits, c.queue_aborts, c.unqueued_lines, c.tag_scans, end};
}

// Four threads whose transactions have six lines each, and none in common.
std::vector<std::byte> transactions_apart() {
  const auto tape = media::tape_writer::to_memory({.pool_size = 1 << 20});
  for (std::uint64_t n = 0; n < 100; ++n) {
    const auto thread = static_cast<unsigned>(n % 4);
    tape->event(media::tape_op::tx_begin, thread, n, 0);
    for (std::uint64_t i = 0; i < 6; ++i)
      tape->event(media::tape_op::store, thread, (thread * 64 + (n / 4 * 6 + i) % 32) * 64, 8);
    tape->event(media::tape_op::tx_commit, thread, n, 0);
  }
  (void)tape->finish();
  return {tape->memory().begin(), tape->memory().end()};
}

// Two transactions fill the FIFO of the L3. Others that have ended wait until it has room, and
// stores wait for these.
TEST(kiln_run, sends_transactions_when_the_queue_of_the_l3_has_room_for_them) {
  for (const machine_config& m : crash_machines()) {
    if (m.name != "room, htm, strong") continue;
    const queue_effects full = with_queues(m, 8, 12, transactions_apart()),
                        room = with_queues(m, 8, 1000, transactions_apart());
    EXPECT_EQ(full.unqueued, 0u);
    EXPECT_GT(full.waits, 10u);
    EXPECT_EQ(room.waits, 0u);
    EXPECT_GT(full.end, room.end);
  }
}

TEST(kiln_run, full_queues_send_lines_early_end_attempts_and_scan_tags) {
  unsigned machines = 0;
  for (const machine_config& m : crash_machines()) {
    if (!m.name.starts_with("room")) continue;
    ++machines;
    const auto tape = make_tape({.transactions = 100});
    const queue_effects long_ones = with_queues(m, 100, 1000, tape);
    EXPECT_EQ(long_ones.sent_early + long_ones.waits + long_ones.aborts + long_ones.unqueued +
                  long_ones.scans,
              0u);
    const queue_effects of_core = with_queues(m, 2, 1000, tape);
    EXPECT_GT(of_core.sent_early, 10u) << m.name;
    EXPECT_EQ(of_core.aborts > 10, m.design.isolation == "htm") << m.name;
    EXPECT_NE(of_core.end, long_ones.end) << m.name;
    const queue_effects of_l3 = with_queues(m, 100, 4, tape);
    EXPECT_GT(of_l3.unqueued, 10u) << m.name;
    EXPECT_GT(of_l3.scans, 10u) << m.name;
    EXPECT_NE(of_l3.end, long_ones.end) << m.name;
  }
  EXPECT_EQ(machines, 4u);
}

TEST(kiln_run, ends_with_queues_of_any_length) {
  for (machine_config m : crash_machines())
    for (const unsigned entries : {1u, 2u, 5u}) {
      m.l1.request_queue_entries = m.l2.request_queue_entries = entries;
      m.l3.request_queue_entries = entries;
      with_queues(m, entries, entries, make_tape({.transactions = 100}));
    }
}

TEST(kiln_run, ends_though_transactions_that_nothing_keeps_apart_wait_for_each_other) {
  unsigned waited = 0;
  for (machine_config m : crash_machines()) {
    if (!m.name.starts_with("overflowing") || m.design.isolation != "mutex") continue;
    m.design.isolation = "none";
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const auto tape = make_tape({.seed = seed});
      auto s = simulation::make(m, std::move(*feed::over(tape, 4)), {});
      ASSERT_TRUE(s) << s.error().message;
      while ((*s)->advance(1 << 20)) {
      }
      if (const auto ended = (*s)->finish(); !ended) ++waited;
    }
  }
  EXPECT_GT(waited, 0u);
}

// K3, K4
TEST(kiln_crash, finds_every_planted_bug) {
  for (const mutant_verdict& v : kill_mutants(1, [] { return false; }))
    EXPECT_TRUE(v.killed) << name_of(v.mutant) << " survived " << v.crashes << " crashes";
}

TEST(kiln_crash, says_what_it_cannot_judge) {
  machine_config m = crash_machines().front();
  m.design.isolation = "none";
  EXPECT_FALSE(crash_machine(m, make_tape({}), {}));
  m.design.isolation = "mutex";
  m.design.name = "native";
  EXPECT_FALSE(crash_machine(m, make_tape({}), {}));
}

}  // namespace
}  // namespace stele::sim
