// The time of a request is the sum of what it spends in each station on its way: private levels,
// interconnect, bank, other cores, port, memory. First against a model that keeps nothing but when
// stations are free and who has a line; then each station by itself, added up by hand.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/cache/test_memory.h>

#include <algorithm>
#include <array>
#include <utility>

namespace stele::sim::by_cache {
namespace {

constexpr picoseconds l1 = 1'000, l1_write = 2'000, l2 = 4'000, l2_write = 7'000, way = 3'000,
                      l3 = 15'000, l3_write = 19'000, memory_time = 100'000, port = 2'000;
constexpr picoseconds asks_owner = 2 * way + l2, from_l3 = l1 + l2 + way + l3 + port + way,
                      from_memory = l1 + l2 + way + l3 + memory_time + way;

machine_config machine_of(unsigned cores) {
  machine_config m = small_machine(cores);
  m.l1.read_latency_ns = 1, m.l1.write_latency_ns = 2;
  m.l2.read_latency_ns = 4, m.l2.write_latency_ns = 7;
  m.crossbar.latency_ns = 3;
  return m;
}

struct caches_alone : caches_on_fixed_memory {
  explicit caches_alone(const machine_config& m) : caches_on_fixed_memory(m, memory_time) {}
  explicit caches_alone(unsigned cores) : caches_alone(machine_of(cores)) {}
  // When the request completes; 0: it waits for memory, and `who` will know. Threads of a core
  // have its number and one that is higher by 10.
  picoseconds ask(unsigned core, std::uint64_t line, bool store, picoseconds at,
                  bool other_thread = false) {
    handle_until(at);
    const auto a =
        caches->access_line({core, core + (other_thread ? 10 : 0), &who, ++token}, line, store, at);
    EXPECT_NE(a.what, access_result::kind::nacked);
    return a.what == access_result::kind::completed ? a.when : 0;
  }
  // The same when nothing else goes on; returns how long it takes.
  picoseconds alone(unsigned core, std::uint64_t line, bool store) {
    now += 10'000'000;
    const picoseconds at = ask(core, line, store, now);
    handle_until(now + 5'000'000);
    return (at != 0 ? at : who.completed.at(token)) - now;
  }
  picoseconds clean(unsigned core, std::uint64_t line, hierarchy::level to, picoseconds at,
                    bool drop = false) {
    handle_until(at);
    return caches->clean({core, core, &who, ++token}, line, to, drop, at).when;
  }

  listener who;
  std::uint64_t token = 0;
  picoseconds now = 0;
};

// Caches that evict nothing, written apart from those of the product.
class reference {
 public:
  static constexpr unsigned cores = 3, lines = 4, banks = 2;

  picoseconds ask(unsigned core, std::uint64_t number, bool store, picoseconds now) {
    fill_until(now);
    line& x = lines_[number];
    if (x.has[core] && (!store || x.owner == core)) {
      if (store) x.dirty[core] = true;
      const time& there = store ? x.writable[core] : x.readable[core];
      return std::max(there.when, now + (store ? l1_write : l1));
    }
    const picoseconds asked = now + (store ? l1_write + l2_write : l1 + l2) + way;
    if (x.filled == 0) {
      x.filled = asked + l3 + memory_time;
      x.owner = core, x.has[core] = true, x.dirty[core] = store;
      return arrives(x, core, true, true, x.filled + way);
    }
    const picoseconds found = occupy(bank_[number % banks], asked, l3);
    const picoseconds ready = found + take_from_others(x, number, core, store, found);
    const bool had = x.has[core];
    x.has[core] = true;
    if (store || x.has == holder(core)) x.owner = core;
    if (store) x.dirty[core] = true;
    const picoseconds there = x.is_here ? occupy(to_core_[core], ready, port) + way
                                        : std::max(x.filled + (ready - found), ready) + way;
    return arrives(x, core, !had, x.owner == core, there);
  }

  picoseconds clean_to_shared(std::uint64_t number, picoseconds now) {
    fill_until(now);
    picoseconds when = now + l1 + way;
    for (unsigned core = 0; core < cores; ++core)
      when = std::max(when, write_back(lines_[number], number, core, now));
    return when;
  }

 private:
  static constexpr unsigned nobody = ~0u;
  struct time {
    picoseconds when = 0;
  };
  struct line {
    std::array<bool, cores> has{}, dirty{};
    std::array<time, cores> readable{}, writable{};
    unsigned owner = nobody;
    picoseconds filled = 0;  // when memory returns it; 0: not asked
    bool is_here = false;
  };

  static std::array<bool, cores> holder(unsigned core) {
    std::array<bool, cores> only{};
    only[core] = true;
    return only;
  }
  static picoseconds occupy(picoseconds& free_at, picoseconds from, picoseconds time) {
    return free_at = std::max(free_at, from) + time;
  }
  static picoseconds arrives(line& x, unsigned core, bool fills, bool owns, picoseconds when) {
    if (fills) x.readable[core].when = when;
    if (owns) x.writable[core].when = when;
    return when;
  }
  // Lines from memory keep their bank busy while they are written.
  void fill_until(picoseconds now) {
    for (;;) {
      std::uint64_t next = lines;
      for (std::uint64_t n = 0; n < lines; ++n)
        if (lines_[n].filled != 0 && !lines_[n].is_here && lines_[n].filled <= now &&
            (next == lines || lines_[n].filled < lines_[next].filled))
          next = n;
      if (next == lines) return;
      lines_[next].is_here = true;
      occupy(bank_[next % banks], lines_[next].filled, l3_write);
    }
  }
  picoseconds write_back(line& x, std::uint64_t number, unsigned core, picoseconds now) {
    if (!std::exchange(x.dirty[core], false)) return now;
    return occupy(bank_[number % banks], occupy(from_core_[core], now, port) + way, l3_write);
  }
  // Returns how long others are asked.
  picoseconds take_from_others(line& x, std::uint64_t number, unsigned core, bool store,
                               picoseconds now) {
    if (!store && (x.owner == nobody || x.owner == core)) return 0;
    bool others = false;
    for (unsigned c = 0; c < cores; ++c) {
      if (c == core || !x.has[c]) continue;
      write_back(x, number, c, now);
      if (store) x.has[c] = false;
      others = true;
    }
    x.owner = nobody;
    return others ? asks_owner : 0;
  }

  std::array<line, lines> lines_;
  std::array<picoseconds, banks> bank_{};
  std::array<picoseconds, cores> to_core_{}, from_core_{};
};

// Episodes begin with cold caches; gaps are shorter and longer than the time to memory.
TEST(cache_times, a_request_takes_what_its_stations_take) {
  base::rng random(5);
  constexpr std::array<picoseconds, 6> gaps = {0, 500, 3'000, 9'000, 35'000, 150'000};
  std::uint64_t joined = 0;
  for (unsigned episode = 0; episode < 1'500; ++episode) {
    caches_alone real(reference::cores);
    reference model;
    std::map<std::uint64_t, picoseconds> expected;
    picoseconds now = 1'000'000;
    for (unsigned n = 0; n < 25; ++n) {
      now += gaps[random.below(gaps.size())];
      const auto core = static_cast<unsigned>(random.below(reference::cores));
      const std::uint64_t line = random.below(reference::lines), what = random.below(9);
      SCOPED_TRACE("episode " + std::to_string(episode) + ", request " + std::to_string(n));
      if (what == 0) {
        ASSERT_EQ(real.clean(core, line, hierarchy::level::shared_cache, now),
                  model.clean_to_shared(line, now));
      } else {
        const picoseconds when = real.ask(core, line, what < 4, now),
                          modelled = model.ask(core, line, what < 4, now);
        if (when != 0) {
          ASSERT_EQ(when, modelled);
        } else {
          expected[real.token] = modelled;
        }
      }
      ASSERT_EQ(real.caches->inconsistency(), "");
    }
    real.handle_until(now + 10'000'000);
    for (const auto& [token, when] : expected)
      ASSERT_EQ(real.who.completed.at(token), when) << "episode " << episode << ", " << token;
    joined += expected.size() - real.below.requests.size();
  }
  EXPECT_GT(joined, 5'000u);
}

// --- each station ---

TEST(cache_times, an_access_takes_the_time_of_its_level) {
  for (const bool store : {false, true}) {
    caches_alone b(2);
    const picoseconds both = store ? l1_write + l2_write : l1 + l2;
    EXPECT_EQ(b.alone(0, 0, store), both + way + l3 + memory_time + way);
    EXPECT_EQ(b.alone(0, 0, store), store ? l1_write : l1);
    b.alone(0, 2, store), b.alone(0, 6, store);  // they have line 0's set of the first level
    EXPECT_EQ(b.alone(0, 0, store), both);
    b.alone(0, 4, store), b.alone(0, 8, store);  // and these that of the second
    EXPECT_EQ(b.alone(0, 0, store), both + way + l3 + port + way);
    EXPECT_EQ(b.alone(0, 0, store), store ? l1_write : l1);
  }
}

TEST(cache_times, another_core_is_asked_for_its_copy) {
  caches_alone b(4);
  const picoseconds store = l1_write + l2_write + way + l3 + port + way;
  b.alone(0, 0, true);
  EXPECT_EQ(b.alone(1, 0, false), from_l3 + asks_owner) << "a modified line is shared";
  EXPECT_EQ(b.alone(2, 0, false), from_l3) << "the shared cache has it";
  EXPECT_EQ(b.alone(1, 0, true), store + asks_owner) << "all copies are invalidated at a time";
  EXPECT_EQ(b.alone(1, 0, true), l1_write);
  EXPECT_EQ(b.alone(3, 0, true), store + asks_owner);
  EXPECT_EQ(b.caches->counts.invalidations, 2u + 1u);
  EXPECT_EQ(b.caches->counts.transfers, 1u);
  b.alone(0, 1, false);
  EXPECT_EQ(b.alone(0, 1, true), l1_write) << "who has a line alone may store to it";
  b.alone(1, 1, false);
  EXPECT_EQ(b.alone(0, 1, true), store + asks_owner);
}

// A store to a shared line asks for ownership. Until that comes, loads find the content, also after
// it has left the first level; a later store waits.
TEST(cache_times, a_line_that_is_upgraded_can_be_read) {
  for (const bool in_l1 : {true, false}) {
    caches_alone b(2);
    b.alone(0, 0, false), b.alone(1, 0, false);
    if (!in_l1) b.alone(0, 2, false), b.alone(0, 6, false);
    const picoseconds at = b.now + 10'000'000,
                      owned = at + l1_write + l2_write + way + l3 + asks_owner + port + way;
    EXPECT_EQ(b.ask(0, 0, true, at), owned);
    EXPECT_EQ(b.ask(0, 0, false, at + 100), at + 100 + l1);
    EXPECT_EQ(b.ask(0, 0, true, at + 100), owned);
    EXPECT_EQ(b.ask(0, 0, true, owned), owned + l1_write);
  }
}

// A bank is free at `at`; two lines of it are asked for, or one of the other bank.
TEST(cache_times, a_bank_serves_one_request_at_a_time) {
  caches_alone b(4);
  for (const std::uint64_t line : {0, 1, 2})
    for (const unsigned core : {2u, 3u}) b.alone(core, line, false);
  const picoseconds at = b.now + 10'000'000;
  EXPECT_EQ(b.ask(0, 0, false, at), at + from_l3);
  EXPECT_EQ(b.ask(1, 1, false, at), at + from_l3) << "the other bank";
  EXPECT_EQ(b.ask(1, 2, false, at), at + l3 + from_l3);
}

// Line 0's bank is asked for line 2 while something else keeps it busy.
TEST(cache_times, a_bank_is_busy_with_lines_that_come_and_go) {
  const auto warm = [](caches_alone& b, bool dirty) {
    for (const unsigned core : {2u, 3u}) b.alone(core, 2, false);
    if (dirty) b.alone(0, 0, true);
    return b.now + 10'000'000;
  };
  constexpr picoseconds reaches_bank = l1 + l2 + way;
  {
    caches_alone b(4);  // a line from memory is written at `filled`
    const picoseconds at = warm(b, false), filled = at + from_memory - way;
    b.ask(0, 0, false, at);
    EXPECT_EQ(b.ask(1, 2, false, filled), filled + l3_write + l3 + port + way);
  }
  {
    caches_alone b(4);  // a dirty line is cleaned: written at the end of its way
    const picoseconds at = warm(b, true), there = at + port + way + l3_write;
    EXPECT_EQ(b.clean(0, 0, hierarchy::level::shared_cache, at), there);
    EXPECT_EQ(b.ask(1, 2, false, at), there + l3 + port + way);
  }
  {
    caches_alone b(4);  // and read again for memory
    const picoseconds at = warm(b, true), there = at + port + way + l3_write;
    b.clean(0, 0, hierarchy::level::memory, at);
    EXPECT_EQ(b.ask(1, 2, false, at), there + l3 + l3 + port + way);
    b.handle_until(at + 10'000'000);
    EXPECT_EQ(b.below.submitted.back(), there + l3);
  }
  {
    caches_alone b(4);  // lines 0, 8, 16, 24 fill a set: line 32 evicts line 0, which is dirty
    warm(b, true);
    for (const std::uint64_t line : {4, 8}) b.alone(0, line, false);  // line 0 leaves core 0
    for (const std::uint64_t line : {16, 24}) b.alone(1, line, false);
    const picoseconds at = b.now + 10'000'000;
    b.ask(1, 32, false, at);
    EXPECT_EQ(b.ask(0, 2, false, at), at + reaches_bank + l3 + l3 + port + way);
    b.handle_until(at + 10'000'000);
    EXPECT_EQ(b.below.requests.back().kind, access::read);
    EXPECT_EQ(std::ranges::count(b.below.requests, access::write, &request::kind), 1);
  }
  {
    caches_alone b(4);  // eight sets in two banks: each bank reads the tags of four
    const picoseconds at = warm(b, false);
    b.alone(3, 1, false), b.alone(2, 1, false);
    b.caches->scan_tags(30'000, at + 20'000'000);
    for (const std::uint64_t line : {1, 2})
      EXPECT_EQ(b.ask(1, line, false, at + 20'000'000) - at,
                20'000'000 + 4 * 30'000 + l3 + port + way + (line == 2 ? port : 0) * 1);
  }
}

// Reported: two threads of a core got a line 45 ns before memory returned it.
TEST(cache_times, later_requests_of_a_core_complete_with_the_first) {
  caches_alone b(2);
  EXPECT_EQ(b.ask(0, 0, false, 1'000), 0u);
  for (const picoseconds later : {1'000u, 2'000u, 40'000u, 90'000u, 110'000u})
    EXPECT_EQ(b.ask(0, 0, later == 40'000, later, true), 0u);
  b.handle_until(10'000'000);
  for (std::uint64_t token = 1; token <= 6; ++token)
    EXPECT_EQ(b.who.completed.at(token), 1'000 + from_memory) << token;
  EXPECT_EQ(b.below.requests.size(), 1u);
  EXPECT_EQ(b.caches->requests_of(0), 0u);
  EXPECT_EQ(b.caches->counts.l1_hits, 5u);
}

// They share its entry in the request queues.
TEST(cache_times, later_requests_of_a_core_need_no_entry) {
  machine_config m = machine_of(2);
  m.l1.request_queue_entries = 2;
  caches_alone b(m);
  b.ask(0, 0, false, 0);
  for (unsigned n = 0; n < 5; ++n) b.ask(0, 0, false, 1'000 + n);
  EXPECT_EQ(b.caches->requests_of(0), 1u);
  b.ask(0, 1, false, 2'000);
  EXPECT_EQ(b.caches->requests_of(0), 2u);
  EXPECT_EQ(b.caches->counts.queue_waits, 0u);
  b.handle_until(10'000'000);
  EXPECT_EQ(b.caches->requests_of(0), 0u);
}

// --- replacement ---

// Lines 0, 4 and 8 share a set of two ways of each private level. The older line leaves, whatever
// another core does with it.
TEST(cache_times, another_cores_request_makes_no_line_younger) {
  for (const bool store : {false, true}) {
    caches_alone b(2);
    b.alone(0, 0, store), b.alone(0, 4, store);
    b.alone(1, 0, false);
    b.alone(0, 8, store);
    EXPECT_FALSE(b.caches->holds(0, 0));
    EXPECT_TRUE(b.caches->holds(0, 4));
  }
  caches_alone b(2);  // lines 0, 2 and 6 share a set of the first level alone
  b.alone(0, 0, true), b.alone(0, 2, true);
  b.alone(1, 0, false);
  b.alone(0, 6, false);
  EXPECT_FALSE(b.caches->would_hit(0, 0, false, never / 2));
  EXPECT_TRUE(b.caches->would_hit(0, 2, false, never / 2));
}

// Nor does a flush, or a line that comes back from above, in any level.
TEST(cache_times, a_flush_makes_no_line_younger) {
  for (const auto to : {hierarchy::level::shared_cache, hierarchy::level::memory}) {
    const auto flushed = [&](caches_alone& b) {
      b.clean(1, 0, to, b.now += 10'000'000);
      b.handle_until(b.now + 1'000'000);
    };
    caches_alone first(2), second(2), third(2);
    first.alone(0, 0, true), first.alone(0, 2, true);
    flushed(first);
    first.alone(0, 6, false);
    EXPECT_FALSE(first.caches->would_hit(0, 0, false, never / 2));
    second.alone(0, 0, true), second.alone(0, 4, true);
    flushed(second);
    second.alone(0, 8, false);
    EXPECT_FALSE(second.caches->holds(0, 0));
    third.alone(0, 0, true), third.alone(0, 8, true);
    third.alone(1, 16, true), third.alone(1, 24, true);
    flushed(third);
    third.alone(1, 32, false);
    EXPECT_EQ(third.caches->shared().find(0), cache_array::none);
  }
}

TEST(cache_times, each_level_evicts_what_it_has_not_seen_for_longest) {
  caches_alone first(2);
  for (const std::uint64_t line : {0, 2, 0, 6}) first.alone(0, line, false);
  EXPECT_TRUE(first.caches->would_hit(0, 0, false, never / 2));
  EXPECT_FALSE(first.caches->would_hit(0, 2, false, never / 2));

  caches_alone second(2);  // line 0 leaves the first level, and is found in the second
  for (const std::uint64_t line : {0, 4, 2, 6, 0, 8}) second.alone(0, line, false);
  EXPECT_TRUE(second.caches->holds(0, 0));
  EXPECT_FALSE(second.caches->holds(0, 4));

  caches_alone third(2);  // a set of four ways: 0, 8, 16, 24; line 0 is found by core 1
  for (const std::uint64_t line : {0, 8, 16, 24}) third.alone(0, line, false);
  third.alone(1, 0, false);
  third.alone(1, 32, false);
  EXPECT_NE(third.caches->shared().find(0), cache_array::none);
  EXPECT_EQ(third.caches->shared().find(8), cache_array::none);
}

// --- what memory and statistics are told ---

TEST(cache_times, memory_is_told_whose_request_it_is) {
  const auto source_of_last = [](caches_alone& b) {
    b.handle_until(b.now + 100'000'000);
    return b.below.requests.back().source;
  };
  caches_alone b(2);
  b.ask(0, 0, true, 0, true);
  EXPECT_EQ(source_of_last(b), 10u);
  b.now = 200'000'000;
  b.caches->clean({1, 11, &b.who, 1}, 0, hierarchy::level::memory, false, b.now);
  EXPECT_EQ(source_of_last(b), 11u);
  EXPECT_EQ(b.below.requests.back().kind, access::write);
  b.caches->stream({1, 7, &b.who, 1}, 3, 0, b.now += 200'000'000);
  EXPECT_EQ(source_of_last(b), 7u);
  // A dirty line is evicted for the request of another thread.
  b.alone(0, 0, true);
  for (const std::uint64_t line : {4, 12, 8, 16, 24}) b.alone(0, line, false);
  b.ask(1, 32, false, b.now += 10'000'000, true);
  b.handle_until(b.now + 10'000'000);
  ASSERT_EQ(std::ranges::count(b.below.requests, access::write, &request::kind), 3);
  const auto write = std::ranges::find_if(b.below.requests.rbegin(), b.below.requests.rend(),
                                          [](const request& r) { return r.kind == access::write; });
  EXPECT_EQ(write->address, 0u);
  EXPECT_EQ(write->source, 11u);
}

TEST(cache_times, counts_each_access_once) {
  caches_alone b(2);
  const hierarchy_counts& c = b.caches->counts;
  b.alone(0, 0, true);                       // from memory
  b.alone(0, 2, true), b.alone(0, 6, true);  // lines 2 and 6 come, 0 leaves the first level
  b.alone(0, 0, false);                      // a hit of the second level; line 2 leaves the first
  b.alone(0, 0, false);                      // a hit of the first
  b.alone(1, 0, false);                      // from core 0
  b.ask(0, 1, false, b.now += 10'000'000);   // two cores ask for one line
  b.ask(1, 1, false, b.now);
  b.handle_until(b.now + 10'000'000);
  EXPECT_EQ(c.l1_hits, 1u);
  EXPECT_EQ(c.l1_misses, 7u);
  EXPECT_EQ(c.l2_hits, 1u);
  EXPECT_EQ(c.l2_misses, 6u);
  EXPECT_EQ(c.l3_hits, 2u);
  EXPECT_EQ(c.l3_misses, 4u);
  EXPECT_EQ(c.l3_fills, 4u);
  EXPECT_EQ(c.memory_reads, 4u);
  EXPECT_EQ(c.memory_writes, 0u);
  EXPECT_EQ(c.l1_fills, 7u);
  EXPECT_EQ(c.l1_newer_lines, 2u);  // lines 0 and 2 leave for the second level
  EXPECT_EQ(c.l2_reads, 1u + 1u);   // the hit, and core 0's newer copy
  EXPECT_EQ(c.l2_writes, 6u + 2u);
  EXPECT_EQ(c.l3_reads, 2u);
  EXPECT_EQ(c.l3_writes, 1u);
  EXPECT_EQ(c.transfers, 2u);
  EXPECT_EQ(c.invalidations, 0u);
  EXPECT_EQ(c.nacks, 0u);
  EXPECT_EQ(c.queue_waits, 0u);
}

// --- coherence ---

// Everything at once, with evictions from all levels: the invariants hold after each request and
// each event.
TEST(coherence, its_invariants_hold_after_each_event) {
  for (const char* policy : {"lru", "plru", "random"})
    for (const unsigned cores : {1u, 2u, 4u}) {
      machine_config m = machine_of(cores);
      m.l1.replacement = m.l2.replacement = m.l3.replacement = policy;
      caches_alone b(m);
      base::rng random(cores);
      picoseconds now = 0;
      for (unsigned n = 0; n < 4'000; ++n) {
        now += random.below(60'000);
        while (!b.events.empty() && b.events.next() <= now) {
          b.events.step();
          ASSERT_EQ(b.caches->inconsistency(), "") << policy << ", request " << n;
        }
        const auto core = static_cast<unsigned>(random.below(cores));
        const std::uint64_t line = random.below(50), what = random.below(20);
        const hierarchy::request_origin who{core, core, &b.who, n};
        if (what == 0)
          b.caches->stream(who, line, 0, now);
        else if (what == 1)
          b.caches->store_full_line(who, line, now);
        else if (what < 4)
          b.caches->clean(who, line,
                          what == 2 ? hierarchy::level::memory : hierarchy::level::shared_cache,
                          random.below(2) == 0, now);
        else
          b.caches->access_line(who, line, what < 10, now);
        ASSERT_EQ(b.caches->inconsistency(), "") << policy << ", request " << n;
      }
      EXPECT_GT(b.caches->counts.l3_misses, 300u);
    }
}

}  // namespace
}  // namespace stele::sim::by_cache
