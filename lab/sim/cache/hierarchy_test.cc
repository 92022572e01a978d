// Latencies added by hand, and coherence on random traces against a flat memory.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/cache/hierarchy.h>
#include <sim/cache/test_memory.h>

#include <map>

namespace stele::sim {
namespace {

// When everything asked for has long arrived.
constexpr picoseconds long_after = 1'000'000'000;

struct bench : caches_on_fixed_memory {
  explicit bench(const machine_config& m = small_machine()) : caches_on_fixed_memory(m) {}
  // The time at which the access completes; handles all pending events.
  picoseconds get(unsigned core, std::uint64_t line, bool store, picoseconds now) {
    const auto a = caches->access_line({core, core, &who, ++token}, line, store, now);
    while (!events.empty()) events.step();
    EXPECT_NE(a.what, access_result::kind::nacked);
    return a.what == access_result::kind::completed ? a.when : who.completed.at(token);
  }
  listener who;
  std::uint64_t token = 0;
};

// First level 1 ns, second 4, interconnect 2 each way, third 15, memory 100, a line over a port 2.
TEST(hierarchy, adds_up_the_levels) {
  bench b;
  EXPECT_EQ(b.get(0, 1, false, 0), 1'000u + 4'000 + 2'000 + 15'000 + 100'000 + 2'000);
  EXPECT_EQ(b.get(0, 1, false, 1'000'000), 1'001'000u);
  b.get(0, 3, false, 2'000'000);
  b.get(0, 5, false, 3'000'000);  // the odd set of l1 has two ways: line 1 is in l2 now
  EXPECT_EQ(b.get(0, 1, false, 4'000'000), 4'000'000u + 1'000 + 4'000);
  EXPECT_EQ(b.get(1, 1, false, 5'000'000),
            5'000'000u + 1'000 + 4'000 + 2'000 + 15'000 + 8'000 + 2'000 + 2'000);  // owner asked
}

// K5. Line 1 is on its way from memory, and there is one entry.
TEST(hierarchy, a_request_that_finds_a_queue_full_waits_for_an_answer) {
  struct expected {
    cache_config machine_config::* level;
    bool same_core, other_core, same_bank;  // whether the next request waits
  };
  for (const expected& e : {expected{&machine_config::l1, true, false, true},
                            expected{&machine_config::l2, true, false, true},
                            expected{&machine_config::l3, false, false, true}}) {
    machine_config m = small_machine();
    (m.*e.level).request_queue_entries = 1;
    const auto waits = [&](unsigned core, std::uint64_t line) {
      bench b(m);
      const auto ask = [&](unsigned of, std::uint64_t wanted) {
        return b.caches->access_line({of, of, &b.who, ++b.token}, wanted, false, b.events.now())
            .what;
      };
      EXPECT_EQ(ask(0, 1), access_result::kind::pending);
      EXPECT_EQ(b.caches->requests_of(0), 1u);
      const bool refused = ask(core, line) == access_result::kind::nacked;
      EXPECT_EQ(b.caches->counts.queue_waits, refused);
      while (!b.events.empty()) b.events.step();
      EXPECT_EQ(b.who.may_try, refused);
      EXPECT_EQ(b.caches->requests_of(0), 0u);
      EXPECT_EQ(ask(core, 6), access_result::kind::pending);
      return refused;
    };
    EXPECT_EQ(waits(0, 2), e.same_core);
    EXPECT_EQ(waits(1, 2), e.other_core);
    EXPECT_EQ(waits(0, 1 + m.l3.banks), e.same_bank);
    EXPECT_FALSE(waits(1, 1));  // it has an entry of its core, and the line is on its way already
  }
}

// Two lines of different banks, so that only a core's port can delay one of them.
TEST(hierarchy, lines_to_or_from_one_core_pass_its_port_one_by_one) {
  bench b(small_machine(4));
  picoseconds now = 0;
  for (const unsigned core : {2u, 3u})  // shared afterwards: no owner is asked
    for (const std::uint64_t line : {1u, 2u}) b.get(core, line, false, now += 1'000'000);
  const auto load = [&](unsigned core, std::uint64_t line, picoseconds at) {
    return b.caches->access_line({core, core, &b.who, 0}, line, false, at).when - at;
  };
  constexpr picoseconds alone = 1'000 + 4'000 + 2'000 + 15'000 + 2'000 + 2'000;
  EXPECT_EQ(load(0, 1, 10'000'000), alone);
  EXPECT_EQ(load(1, 2, 10'000'000), alone);
  for (const std::uint64_t line : {1u, 2u}) b.get(3, line, true, now += 10'000'000);
  for (const std::uint64_t line : {1u, 2u}) b.get(2, line, false, now += 10'000'000);
  EXPECT_EQ(load(0, 1, 100'000'000), alone);
  EXPECT_EQ(load(0, 2, 100'000'000), alone + 2'000);

  for (const std::uint64_t line : {1u, 2u}) b.get(0, line, true, now += 100'000'000);
  const auto clean = [&](std::uint64_t line) {
    return b.caches
               ->clean({0, 0, &b.who, 0}, line, hierarchy::level::shared_cache, false, 500'000'000)
               .when -
           500'000'000;
  };
  EXPECT_EQ(clean(1), 2'000u + 2'000 + 19'000);
  EXPECT_EQ(clean(2), 2'000u + 2'000 + 2'000 + 19'000);
}

TEST(hierarchy, a_second_request_for_a_line_on_its_way_waits_for_the_first) {
  bench b;
  const auto first = b.caches->access_line({0, 0, &b.who, 1}, 1, false, 0),
             second = b.caches->access_line({1, 1, &b.who, 2}, 1, false, 10);
  EXPECT_EQ(first.what, access_result::kind::pending);
  EXPECT_EQ(second.what, access_result::kind::pending);
  while (!b.events.empty()) b.events.step();
  EXPECT_EQ(b.below.requests.size(), 1u);
  EXPECT_GE(b.who.completed.at(2), b.who.completed.at(1));
}

TEST(hierarchy, a_store_takes_the_line_from_all_others) {
  bench b;
  b.get(0, 1, false, 0);
  b.get(1, 1, false, 1'000'000);
  EXPECT_FALSE(b.caches->hit(0, 1, true, long_after));  // shared: a store needs a request
  b.get(0, 1, true, 2'000'000);
  EXPECT_TRUE(b.caches->hit(0, 1, true, long_after));
  EXPECT_FALSE(b.caches->hit(1, 1, false, long_after));
  EXPECT_EQ(b.caches->counts.invalidations, 1u);
}

TEST(hierarchy, what_is_alone_may_be_stored_to_without_asking) {
  bench b;
  b.get(0, 1, false, 0);
  EXPECT_TRUE(b.caches->hit(0, 1, true, long_after));
}

TEST(hierarchy, clean_to_memory_writes_the_newest_content_once) {
  bench b;
  b.caches->track_values();
  b.get(0, 1, true, 0);
  b.caches->value_stored(0, 1, 77);
  auto a = b.caches->clean({1, 1, &b.who, 99}, 1, hierarchy::level::memory, false, 1'000'000);
  EXPECT_EQ(a.what, access_result::kind::pending);
  a = b.caches->clean({1, 1, &b.who, 100}, 1, hierarchy::level::memory, false, 1'000'001);
  EXPECT_EQ(a.what, access_result::kind::pending) << "clean above, and still on its way";
  while (!b.events.empty()) b.events.step();
  EXPECT_EQ(b.caches->memory_value(1), 77u);
  EXPECT_EQ(b.below.requests.size(), 2u);
  EXPECT_EQ(b.who.completed.at(99), b.who.completed.at(100));
  EXPECT_TRUE(b.caches->hit(0, 1, false, long_after));
  a = b.caches->clean({1, 1, &b.who, 101}, 1, hierarchy::level::memory, false, 9'000'000);
  EXPECT_EQ(a.what, access_result::kind::completed);
}

// One writer at a time, readers see the last write: four cores on few lines, so that lines are
// evicted all the time.
// K1
TEST(hierarchy, readers_see_the_last_write) {
  for (const char* policy : {"lru", "plru", "bip", "random"}) {
    machine_config m = small_machine(4);
    m.l1.replacement = m.l2.replacement = m.l3.replacement = policy;
    bench b(m);
    b.caches->track_values();
    std::map<std::uint64_t, std::uint64_t> flat;
    base::rng random(3);
    picoseconds now = 0;
    for (std::uint64_t n = 1; n <= 200'000; ++n) {
      const auto core = static_cast<unsigned>(random() % 4);
      const std::uint64_t line = random() % 40;
      const bool store = random() % 3 == 0;
      if (random() % 50 == 0)
        (void)b.caches->clean({core, core, &b.who, 1}, line, hierarchy::level::memory,
                              random() % 2 == 0, now);
      while (!b.events.empty() && b.events.next() <= now) b.events.step();
      const auto a = b.caches->access_line({core, core, &b.who, 0}, line, store, now);
      now += 40'000;  // shorter gaps would make all requests queue at the banks
      if (a.what == access_result::kind::nacked) continue;
      ASSERT_EQ(b.caches->value_seen(core, line), flat[line]) << policy << ", access " << n;
      if (store) b.caches->value_stored(core, line, flat[line] = n);
      if (n % 1000 == 0) {
        ASSERT_EQ(b.caches->inconsistency(), "") << policy << ", access " << n;
      }
    }
    while (!b.events.empty()) b.events.step();
    EXPECT_GT(b.caches->counts.l3_misses, 1000u);
    EXPECT_GT(b.caches->counts.transfers, 1000u);
  }
}

}  // namespace
}  // namespace stele::sim
