// Prefetches of the second level: which lines, when they arrive, what they occupy, and that they
// are no accesses. Times are added by hand.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/core/test_world.h>
#include <sim/crash_fixture.h>

#include <map>
#include <vector>

namespace stele::sim::by_prefetch {
namespace {

// From l1 and l2 (1 + 4 ns) over the interconnect (2) to the bank (15), memory (100) and back (2).
constexpr picoseconds from_memory = 124'000, from_l2 = 5'000;

machine_config machine_of(const char* kind, unsigned cores = 1) {
  machine_config m = small_machine(cores);
  m.prefetch.kind = kind;
  return m;
}

struct bench : caches_on_fixed_memory {
  using caches_on_fixed_memory::caches_on_fixed_memory;
  // How long the access takes that begins at `at`; everything else goes on until then.
  picoseconds get(unsigned core, std::uint64_t line, picoseconds at, bool store = false) {
    handle_until(at);
    const auto a = caches->access_line({core, core, &who, ++token}, line, store, at);
    EXPECT_NE(a.what, access_result::kind::nacked);
    if (a.what == access_result::kind::completed) return a.when - at;
    while (!who.completed.contains(token)) events.step();
    return who.completed.at(token) - at;
  }
  // Microseconds apart, so that everything has arrived.
  std::vector<picoseconds> get_all(const std::vector<std::uint64_t>& lines) {
    std::vector<picoseconds> times;
    for (const std::uint64_t line : lines) times.push_back(get(0, line, now += 1'000'000));
    return times;
  }
  const hierarchy_counts& counts() const { return caches->counts; }

  listener who;
  std::uint64_t token = 0;
  picoseconds now = 0;
};

using times = std::vector<picoseconds>;

TEST(prefetch, next_line_hides_all_but_the_first_miss_of_a_stream) {
  bench b(machine_of("next-line"));
  EXPECT_EQ(b.get_all({0, 1, 2, 3, 4, 5}),
            (times{from_memory, from_l2, from_l2, from_l2, from_l2, from_l2}));
  b.handle_until(never - 1);
  EXPECT_EQ(b.counts().prefetches_issued, 6u);
  EXPECT_EQ(b.counts().prefetches_useful, 5u);
  EXPECT_EQ(b.counts().prefetches_late + b.counts().prefetches_useless, 0u);
  EXPECT_EQ(b.counts().memory_reads, 7u) << "one line ahead";
  EXPECT_EQ(b.counts().l2_hits, 5u);
  EXPECT_EQ(b.counts().l3_misses, 1u) << "a prefetch is no miss";
}

TEST(prefetch, only_first_uses_go_on) {
  bench b(machine_of("next-line"));
  (void)b.get_all({0, 1});
  (void)b.get_all({0, 1, 0, 1});
  EXPECT_EQ(b.counts().prefetches_issued, 2u);
}

TEST(prefetch, degree_and_distance_say_which_lines) {
  machine_config m = machine_of("next-line");
  m.prefetch.degree = 2, m.prefetch.distance = 3;
  bench b(m);
  (void)b.get_all({8});
  b.handle_until(2'000'000);
  ASSERT_EQ(b.below.requests.size(), 3u);
  EXPECT_EQ(b.below.requests[1].address, 11u * 64);
  EXPECT_EQ(b.below.requests[2].address, 12u * 64);
  EXPECT_FALSE(b.caches->would_hit(0, 11, false, 2'000'000)) << "in the second level alone";
  EXPECT_TRUE(b.caches->holds(0, 11));
}

TEST(prefetch, stays_in_its_page) {
  bench b(machine_of("next-line"));
  (void)b.get_all({63});
  EXPECT_EQ(b.counts().prefetches_issued + b.counts().prefetches_dropped, 0u);
  (void)b.get_all({62 + 64});
  EXPECT_EQ(b.counts().prefetches_issued, 1u);
}

TEST(prefetch, a_late_one_is_joined) {
  bench late(machine_of("next-line"));
  const auto first = late.caches->access_line({0, 0, &late.who, 100}, 0, false, 0);
  EXPECT_EQ(first.what, access_result::kind::pending);
  // The prefetch was sent with the first line's request, and arrives with it.
  EXPECT_EQ(late.get(0, 1, 50'000), from_memory - 50'000);
  EXPECT_EQ(late.counts().prefetches_late, 1u);
  EXPECT_EQ(late.counts().prefetches_useful, 0u);
  late.handle_until(never - 1);
  EXPECT_EQ(late.counts().memory_reads, 3u) << "lines 0, 1, and 2 behind the first use of 1";
}

TEST(prefetch, a_stride_is_seen_at_its_third_line) {
  for (const std::int64_t stride : {4, 9, -5}) {
    bench b(machine_of("stride"));
    const auto at = [&](std::int64_t n) {
      return static_cast<std::uint64_t>(64 + (stride < 0 ? 60 : 0) + n * stride);
    };
    EXPECT_EQ(b.get_all({at(0), at(1), at(2), at(3), at(4)}),
              (times{from_memory, from_memory, from_memory, from_l2, from_l2}))
        << stride;
    EXPECT_EQ(b.counts().prefetches_issued, 3u);
    EXPECT_EQ(b.counts().prefetches_useful, 2u);
  }
}

TEST(prefetch, a_stride_survives_one_exception) {
  bench b(machine_of("stride"));
  // 20 is the exception: back to the initial state, with the stride kept. 24 is right again.
  EXPECT_EQ(
      b.get_all({0, 4, 8, 12, 21, 25, 29}),
      (times{from_memory, from_memory, from_memory, from_l2, from_memory, from_memory, from_l2}));
}

TEST(prefetch, an_irregular_stream_has_no_stride) {
  bench b(machine_of("stride"));
  (void)b.get_all({0, 7, 9, 30, 22, 41, 5, 60});
  EXPECT_EQ(b.counts().prefetches_issued, 0u);
}

TEST(prefetch, two_pages_of_one_entry_displace_each_other) {
  machine_config m = machine_of("stride");
  m.prefetch.entries = 1;
  bench b(m);
  (void)b.get_all({0, 64, 4, 68, 8, 72, 12, 76});
  EXPECT_EQ(b.counts().prefetches_issued, 0u);
  m.prefetch.entries = 2;
  bench both(m);
  (void)both.get_all({0, 64, 4, 68, 8, 72, 12, 76});
  EXPECT_EQ(both.counts().prefetches_issued, 4u);
}

TEST(prefetch, each_thread_has_its_own_table) {
  bench b(machine_of("stride", 2));
  for (const std::uint64_t line : {0, 4, 8}) (void)b.get(line / 4 % 2, line, b.now += 1'000'000);
  EXPECT_EQ(b.counts().prefetches_issued, 0u);
}

TEST(prefetch, next_line_wastes_bandwidth_on_scattered_lines) {
  bench b(machine_of("next-line"));
  EXPECT_EQ(b.get_all({0, 8, 16, 24}), times(4, from_memory));
  b.handle_until(9'000'000);
  EXPECT_EQ(b.below.requests.size(), 8u);
  EXPECT_EQ(b.counts().prefetches_useful, 0u);
  EXPECT_EQ(b.counts().prefetches_useless, 2u) << "a set of the second level has two ways";
}

TEST(prefetch, waits_for_nothing_when_a_request_queue_is_full) {
  machine_config m = machine_of("next-line");
  m.l1.request_queue_entries = 1;
  bench b(m);
  (void)b.get_all({0});
  EXPECT_EQ(b.counts().prefetches_dropped, 1u);
  EXPECT_EQ(b.counts().prefetches_issued, 0u);
  EXPECT_EQ(b.counts().queue_waits, 0u);
}

TEST(prefetch, holds_an_entry_of_the_request_queues) {
  machine_config m = machine_of("next-line");
  m.l1.request_queue_entries = 2;
  bench b(m);
  (void)b.caches->access_line({0, 0, &b.who, 1}, 0, false, 0);
  const auto third = b.caches->access_line({0, 0, &b.who, 2}, 9, false, 1'000);
  EXPECT_EQ(third.what, access_result::kind::nacked);
  b.handle_until(1'000'000);
  EXPECT_GE(b.who.may_try, 1u);
}

TEST(prefetch, occupies_the_bank_that_it_reads) {
  const auto time_of_another = [](const char* kind) {
    bench b(machine_of(kind, 3));
    for (const unsigned core : {1u, 2u}) (void)b.get(core, 1, 1'000'000 * core);  // nobody owns it
    (void)b.get(2, 5, 4'000'000);
    (void)b.caches->access_line({0, 0, &b.who, 99}, 0, false, 5'000'000);
    return b.get(1, 5, 5'000'000);
  };
  EXPECT_EQ(time_of_another("next-line"), time_of_another("none") + 15'000);
}

TEST(prefetch, leaves_a_line_to_the_core_that_owns_it) {
  bench b(machine_of("next-line", 2));
  (void)b.get(1, 1, 0, true);
  (void)b.get(0, 0, 1'000'000);
  EXPECT_EQ(b.counts().prefetches_dropped, 1u);
  EXPECT_TRUE(b.caches->hit(1, 1, true, 2'000'000));
  EXPECT_EQ(b.counts().transfers, 0u);
}

TEST(prefetch, is_no_read_of_a_transaction) {
  const world w({{tape_op::tx_begin},
                 {tape_op::load, 0},
                 {tape_op::compute, 1000, 0},
                 {tape_op::tx_commit},
                 {tape_op::compute, 500, 0, 1},
                 {tape_op::store, 64, 8, 1}},
                machine_of("next-line", 2), "htm");
  EXPECT_EQ(w.isolation->counts.conflicts, 0u);
  EXPECT_GE(w.caches->counts.prefetches_issued, 1u);
  const world read({{tape_op::tx_begin},
                    {tape_op::load, 0},
                    {tape_op::load, 64},
                    {tape_op::compute, 1000, 0},
                    {tape_op::tx_commit},
                    {tape_op::compute, 500, 0, 1},
                    {tape_op::store, 64, 8, 1}},
                   machine_of("next-line", 2), "htm");
  EXPECT_EQ(read.isolation->counts.conflicts, 1u) << "a load is one";
}

TEST(prefetch, ends_no_attempt_of_another_core) {
  const world w({{tape_op::tx_begin},
                 {tape_op::store, 64},
                 {tape_op::compute, 1000, 0},
                 {tape_op::tx_commit},
                 {tape_op::compute, 500, 0, 1},
                 {tape_op::load, 0, 8, 1}},
                machine_of("next-line", 2), "htm");
  EXPECT_EQ(w.isolation->counts.conflicts, 0u);
  EXPECT_EQ(w.caches->counts.prefetches_dropped, 1u);
}

TEST(prefetch, keeps_the_line_that_caused_it_even_in_a_cache_of_one_way) {
  machine_config m = machine_of("next-line");
  m.l1 = {.size_bytes = 64, .ways = 1}, m.l2 = {.size_bytes = 64, .ways = 1};
  bench b(m);
  b.caches->track_values();
  (void)b.get_all({0, 1});
  EXPECT_EQ(b.caches->value_seen(0, 1), 0u);
  EXPECT_EQ(b.counts().prefetches_issued, 0u);
  EXPECT_EQ(b.counts().prefetches_dropped, 2u);
}

// Readers see the last write and the invariants hold, while lines are prefetched.
TEST(prefetch, leaves_coherence_as_it_is) {
  for (const char* kind : {"next-line", "stride"})
    for (const char* policy : {"lru", "random"}) {
      machine_config m = machine_of(kind, 4);
      m.prefetch.degree = 3;
      m.l1.replacement = m.l2.replacement = m.l3.replacement = policy;
      bench b(m);
      b.caches->track_values();
      std::map<std::uint64_t, std::uint64_t> flat;
      base::rng random(3);
      picoseconds now = 0;
      std::uint64_t line = 0;
      for (std::uint64_t n = 1; n <= 50'000; ++n, now += 40'000) {
        const auto core = static_cast<unsigned>(random() % 4);
        line = random() % 3 == 0 ? random() % 40 : (line + 2) % 40;
        b.handle_until(now);
        const bool store = random() % 3 == 0;
        const auto a = b.caches->access_line({core, core, &b.who, 0}, line, store, now);
        if (a.what == access_result::kind::nacked) continue;
        ASSERT_EQ(b.caches->value_seen(core, line), flat[line]) << kind << ", access " << n;
        if (store) b.caches->value_stored(core, line, flat[line] = n);
        if (n % 100 == 0) {
          ASSERT_EQ(b.caches->inconsistency(), "") << kind << ", access " << n;
        }
      }
      EXPECT_GT(b.counts().prefetches_issued, 100u) << kind;
      EXPECT_GE(b.counts().prefetches_issued, b.counts().prefetches_useful +
                                                  b.counts().prefetches_late +
                                                  b.counts().prefetches_useless);
      EXPECT_GT(b.counts().prefetches_useless, 100u) << kind;
    }
}

TEST(prefetch, breaks_no_rule_of_kiln) {
  std::uint64_t crashes = 0;
  for (machine_config m : crash_machines())
    for (const char* kind : {"next-line", "stride"}) {
      m.prefetch.kind = kind, m.prefetch.degree = 2;
      const auto r = crash_machine(m, make_tape({.seed = 2}), {.crashes = 500, .seed = 2});
      ASSERT_TRUE(r) << m.name << ": " << r.error().message;
      expect_allowed(m.name, *r);
      crashes += r->crashes;
    }
  EXPECT_GT(crashes, 1000u);
}

}  // namespace
}  // namespace stele::sim::by_prefetch
