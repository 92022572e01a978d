// Translation: a hit costs nothing, a miss the loads of its walk. Times are added by hand.
#include <gtest/gtest.h>
#include <sim/core/test_world.h>
#include <sim/crash_fixture.h>

#include <vector>

namespace stele::sim::by_tlb {
namespace {

// Of a load of a walk, which begins in l2 (4 ns): from there; from memory over the interconnect (2
// each way), the bank (15) and memory (100).
constexpr picoseconds from_l2 = 4'000, from_memory = 4'000 + 2'000 + 15'000 + 100'000 + 2'000;

constexpr std::uint64_t level_bytes = (std::uint64_t{1} << 36) + 4096;

constexpr tlb_config four_entries{.l1_entries = 4, .l1_ways = 4, .walk_levels = 2};

machine_config machine_of(const tlb_config& c, unsigned cores = 1) {
  machine_config m = small_machine(cores);
  m.tlb = c;
  return m;
}

struct waiter final : requester {
  std::vector<picoseconds> woken;
  void done(picoseconds, std::uint64_t) override {}
  void retry(picoseconds now) override { woken.push_back(now); }
};

struct bench : caches_on_fixed_memory {
  explicit bench(const tlb_config& c, const machine_config& m = small_machine())
      : caches_on_fixed_memory(m),
        buffers(std::move(*tlb::make(events, *caches, c, 0))),
        page_lines(c.page_bytes / 64) {}
  void handle_all() {
    while (!events.empty()) events.step();
  }
  // What the translation of an address of this page takes, when nothing else goes on.
  picoseconds get(std::uint64_t page) { return get_line(page * page_lines); }
  picoseconds get_line(std::uint64_t line) {
    const picoseconds begun = now += 1'000'000;
    picoseconds at = begun;
    if (buffers->translate(0, line, who, at)) return at - begun;
    who.woken.clear();
    handle_all();
    at = who.woken.at(0);
    EXPECT_TRUE(buffers->translate(0, line, who, at)) << "the walk has found it";
    return at - begun;
  }

  std::unique_ptr<tlb> buffers;
  std::uint64_t page_lines;
  waiter who;
  picoseconds now = 0;
};

TEST(tlb, a_hit_costs_nothing_and_a_miss_the_loads_of_its_walk) {
  bench b(four_entries);
  EXPECT_EQ(b.get(0), 2 * from_memory);
  EXPECT_EQ(b.get(0), 0u);
  EXPECT_EQ(b.get_line(63), 0u) << "the last line of the page";
  EXPECT_EQ(b.get_line(64), 2 * from_l2) << "the next page's entries are in the same lines";
  EXPECT_EQ(b.get(8), from_l2 + from_memory) << "another line of the last level";
  EXPECT_EQ(b.get(512), 2 * from_memory - (from_memory - from_l2)) << "8 entries in a line above";
  const tlb_counts& c = b.buffers->counts;
  EXPECT_EQ(c.l1_hits, 2u);
  EXPECT_EQ(c.misses, 4u);
  EXPECT_EQ(c.walks, 4u);
  EXPECT_EQ(c.walk_loads, 8u);
  EXPECT_EQ(c.walk_time, 2 * from_memory + 2 * from_l2 + 2 * (from_l2 + from_memory));
  EXPECT_EQ(b.caches->counts.l1_accesses(), 0u) << "its loads are no accesses of a thread";
}

TEST(tlb, a_walk_has_as_many_loads_as_levels) {
  for (const unsigned levels : {1u, 3u, 5u}) {
    tlb_config c = four_entries;
    c.walk_levels = levels;
    bench b(c);
    EXPECT_EQ(b.get(0), levels * from_memory);
    ASSERT_EQ(b.below.requests.size(), levels);
    for (unsigned n = 0; n < levels; ++n)
      EXPECT_EQ(b.below.requests[n].address, page_tables_at + n * level_bytes);
  }
}

TEST(tlb, entries_lie_in_the_order_of_pages) {
  bench b(four_entries);
  (void)b.get(512 * 8 * 3 + 8 * 5);
  ASSERT_EQ(b.below.requests.size(), 2u);
  EXPECT_EQ(b.below.requests[0].address, page_tables_at + 64 * 3);
  EXPECT_EQ(b.below.requests[1].address, page_tables_at + level_bytes + 64 * (512 * 3 + 5));
}

TEST(tlb, keeps_as_many_pages_as_it_has_entries) {
  bench b(four_entries);
  for (std::uint64_t page = 0; page < 4; ++page) (void)b.get(page);
  (void)b.get(0);  // 1 is the oldest now
  (void)b.get(4);
  EXPECT_EQ(b.get(0), 0u);
  EXPECT_EQ(b.get(2), 0u);
  EXPECT_NE(b.get(1), 0u);
}

TEST(tlb, a_set_keeps_as_many_pages_as_it_has_ways) {
  tlb_config c = four_entries;
  c.l1_ways = 2;
  bench b(c);
  for (const std::uint64_t page : {0, 2, 4}) (void)b.get(page);
  EXPECT_NE(b.get(0), 0u) << "evens have a set of two";
  (void)b.get(1);
  EXPECT_EQ(b.get(1), 0u);
}

TEST(tlb, a_hit_of_the_second_level_takes_its_latency_and_moves_the_page_up) {
  tlb_config c = four_entries;
  c.l1_entries = 1, c.l1_ways = 1, c.l2_entries = 8, c.l2_ways = 8, c.l2_latency_ns = 3;
  bench b(c);
  (void)b.get(0);
  (void)b.get(1);
  EXPECT_EQ(b.get(0), 3'000u);
  EXPECT_EQ(b.get(0), 0u);
  EXPECT_EQ(b.get(1), 3'000u);
  EXPECT_EQ(b.buffers->counts.l2_hits, 2u);
  EXPECT_EQ(b.buffers->counts.walks, 2u);
  for (std::uint64_t page = 2; page < 9; ++page) (void)b.get(page);
  EXPECT_EQ(b.get(1), 3'000u);
  EXPECT_GT(b.get(0), 3'000u) << "eight others are newer";
}

TEST(tlb, a_huge_page_is_one_entry) {
  tlb_config c = four_entries;
  c.page_bytes = 2 << 20, c.walk_levels = 3;
  machine_config m = small_machine();
  m.l2.ways = 8;  // one set: the levels' entries do not displace each other
  bench b(c, m);
  EXPECT_EQ(b.get(0), 3 * from_memory);
  EXPECT_EQ(b.get_line((2 << 20) / 64 - 1), 0u);
  EXPECT_EQ(b.get_line((2 << 20) / 64), 3 * from_l2);
}

TEST(tlb, walks_of_one_page_are_one_walk_and_of_two_overlap) {
  bench b(four_entries);
  waiter other, third;
  picoseconds now = 0, later = 10'000;
  EXPECT_FALSE(b.buffers->translate(0, 0, b.who, now));
  EXPECT_FALSE(b.buffers->translate(1, 1, other, later));
  EXPECT_FALSE(b.buffers->translate(2, 64 * 8, third, now));
  b.handle_all();
  EXPECT_EQ(b.who.woken, std::vector{2 * from_memory});
  EXPECT_EQ(other.woken, b.who.woken);
  // Its first load joins the other walk's; its second goes beside that one's.
  EXPECT_EQ(third.woken, b.who.woken);
  EXPECT_EQ(b.buffers->counts.walks, 2u);
  EXPECT_EQ(b.buffers->counts.misses, 3u);
  EXPECT_EQ(b.below.requests.size(), 3u);
}

TEST(tlb, a_walk_waits_for_an_entry_of_the_request_queues) {
  machine_config m = small_machine();
  m.l1.request_queue_entries = 1;
  tlb_config c = four_entries;
  c.walk_levels = 1;
  bench b(c, m);
  listener of_core;
  (void)b.caches->access_line({0, 0, &of_core, 1}, 5, false, 0);  // has the entry until 122 ns
  picoseconds now = 1'000;
  EXPECT_FALSE(b.buffers->translate(0, 0, b.who, now));
  b.handle_all();
  EXPECT_EQ(b.who.woken, std::vector{122'000 + from_memory});
  EXPECT_EQ(b.caches->counts.queue_waits, 1u);
  EXPECT_EQ(b.buffers->counts.walk_loads, 1u);
}

TEST(tlb, what_a_walk_found_is_its_threads_once) {
  tlb_config c = four_entries;
  c.l1_entries = c.l1_ways = 1;
  bench b(c);
  waiter other;
  picoseconds now = 0;
  EXPECT_FALSE(b.buffers->translate(0, 0, b.who, now));
  EXPECT_FALSE(b.buffers->translate(1, 64, other, now));
  b.handle_all();
  now = 1'000'000;
  EXPECT_TRUE(b.buffers->translate(0, 0, b.who, now));
  EXPECT_FALSE(b.buffers->translate(0, 0, b.who, now)) << "the other page has the only entry";
  EXPECT_TRUE(b.buffers->translate(1, 64, other, now));
  b.handle_all();
  now = 2'000'000;
  EXPECT_FALSE(b.buffers->translate(0, 2 * 64, b.who, now)) << "found was another page";
  EXPECT_EQ(b.buffers->counts.l1_hits, 0u);
}

// --- threads ---

TEST(tlb, a_thread_waits_for_the_walk_and_then_goes_on) {
  const std::vector<event> loads = {{tape_op::load, 0}, {tape_op::load, 64}, {tape_op::load, 128}};
  const world without(loads), with(loads, machine_of(four_entries));
  EXPECT_EQ(with.ns(), without.ns() + 2 * from_memory / 1000.0);
  EXPECT_EQ(with.tlbs[0]->counts.l1_hits, 2u);
  EXPECT_EQ(with.tlbs[0]->counts.misses, 1u);
}

TEST(tlb, a_load_before_the_miss_goes_on_beside_the_walk) {
  tlb_config c = four_entries;
  c.walk_levels = 1;
  const std::vector<event> one = {{tape_op::load, 0}},
                           two = {{tape_op::load, 0}, {tape_op::load, 4096}};
  const world first(one, machine_of(c)), both(two, machine_of(c));
  // The second walk (in l2) begins when the first load has issued.
  EXPECT_EQ(both.ns(), first.ns() + from_l2 / 1000.0 + 1);
}

TEST(tlb, a_hit_of_the_second_level_delays_its_access) {
  tlb_config c = four_entries;
  c.l1_entries = c.l1_ways = 1, c.l2_entries = c.l2_ways = 4;
  const std::vector<event> loads = {{tape_op::load, 0}, {tape_op::load, 4096}, {tape_op::load, 0}};
  const double free = world(loads, machine_of(c)).ns();
  c.l2_latency_ns = 500;
  const world w(loads, machine_of(c));
  EXPECT_EQ(w.tlbs[0]->counts.l2_hits, 1u);
  EXPECT_GT(w.ns(), free);
  c.l2_latency_ns = 700;
  EXPECT_EQ(world(loads, machine_of(c)).ns(), w.ns() + 200);
}

TEST(tlb, a_flush_and_a_stream_need_an_address_too) {
  for (const tape_op op : {tape_op::flush, tape_op::stream}) {
    const std::vector<event> events = {{op, 0, 64}, {tape_op::fence}};
    EXPECT_EQ(world(events, machine_of(four_entries)).ns(),
              world(events).ns() + 2 * from_memory / 1000.0);
  }
}

TEST(tlb, threads_of_a_core_that_displace_each_others_pages_end) {
  tlb_config c = four_entries;
  c.l1_entries = c.l1_ways = 1;
  std::vector<event> events;
  for (unsigned n = 0; n < 50; ++n)
    for (unsigned t = 0; t < 2; ++t)
      events.push_back({tape_op::load, (std::uint64_t{t} << 12) + 64 * (n % 8), 8, t});
  machine_config m = machine_of(c);
  m.cores.threads_per_core = 2;
  const world w(events, m);
  EXPECT_EQ(w.threads[0]->counts.loads + w.threads[1]->counts.loads, 100u);
  EXPECT_GT(w.tlbs[0]->counts.walks, 2u);
}

TEST(tlb, each_core_has_its_own) {
  const world w({{tape_op::load, 0}, {tape_op::load, 64, 8, 1}}, machine_of(four_entries, 2));
  EXPECT_EQ(w.tlbs[0]->counts.walks, 1u);
  EXPECT_EQ(w.tlbs[1]->counts.walks, 1u);
}

TEST(tlb, an_attempt_that_ends_during_a_walk_is_tried_again) {
  // Core 1 stores line 0 (its walk is one of a warm l2) while core 0 walks for its second page.
  std::vector<event> events = {{tape_op::tx_begin}, {tape_op::load, 0}};
  for (unsigned n = 1; n < 12; ++n) events.push_back({tape_op::load, std::uint64_t{n} << 15});
  events.push_back({tape_op::tx_commit});
  for (unsigned n = 0; n < 6; ++n) events.push_back({tape_op::store, 0, 8, 1});
  for (unsigned n = 1; n < 8; ++n)
    events.push_back({tape_op::compute, 100, 0, 1}), events.push_back({tape_op::store, 0, 8, 1});
  const world w(events, machine_of(four_entries, 2), "htm");
  EXPECT_EQ(w.threads[0]->counts.commits, 1u);
  EXPECT_GE(w.threads[0]->counts.aborts, 1u);
}

TEST(tlb, breaks_no_rule_of_kiln) {
  std::uint64_t crashes = 0;
  for (machine_config m : crash_machines()) {
    m.tlb = {.l1_entries = 2, .l1_ways = 2, .l2_entries = 4, .l2_ways = 2, .walk_levels = 2};
    const auto r = crash_machine(m, make_tape({.seed = 2}), {.crashes = 500, .seed = 2});
    ASSERT_TRUE(r) << m.name << ": " << r.error().message;
    expect_allowed(m.name, *r);
    crashes += r->crashes;
  }
  EXPECT_GT(crashes, 500u);
}

}  // namespace
}  // namespace stele::sim::by_tlb
