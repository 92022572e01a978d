// Runs are stopped at random events, saved, read into a simulation that was just made, and run to
// their end. The archive of the state at the end has every count and every line of the machine, so
// it is compared byte for byte with that of a run that was never stopped; so are the archives
// before and after a restore.
//
// A member that changes in a run and is missing in visit_state() has its first value after a
// restore, and such a run ends elsewhere. Damaged files are in checkpoint_damage_test.cc, those of
// whole runs in checkpoint_run_test.cc.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/checkpoint_fixture.h>
#include <sim/controller/schedulers.h>

#include <chrono>

namespace stele::sim {
namespace {

// Stops at `stops` random events, and each time goes on in a new simulation.
void expect_same(const restored_run& of, std::uint64_t seed, unsigned rounds, unsigned stops) {
  SCOPED_TRACE(of.name + ", seed " + std::to_string(seed));
  auto whole = of.make(seed);
  std::uint64_t events = 0;
  while (whole->advance(1)) ++events;
  const std::vector<std::byte> last_event = bytes_of(*whole);
  const auto finished = whole->finish();
  const std::vector<std::byte> end = bytes_of(*whole);
  base::rng random(seed);
  for (unsigned round = 0; round < rounds; ++round) {
    auto s = of.make(seed);
    std::uint64_t at = 0;
    for (unsigned stop = 0; stop < stops; ++stop) {
      const std::uint64_t next = at + random.below(events - at + 1);
      while (at != next && s->advance(1)) ++at;
      const std::vector<std::byte> saved = bytes_of(*s);
      auto restored = of.make(seed);
      ASSERT_EQ(fault_of(*restored, saved), "") << "at event " << at;
      ASSERT_TRUE(bytes_of(*restored) == saved) << "saved again, after event " << at;
      s = std::move(restored);
    }
    while (s->advance(1 << 20)) {
    }
    ASSERT_TRUE(bytes_of(*s) == last_event) << "round " << round << ", last stop " << at;
    const auto f = s->finish();
    ASSERT_EQ(f.has_value(), finished.has_value());
    ASSERT_TRUE(bytes_of(*s) == end) << "after finish(), round " << round;
  }
}

TEST(checkpoint, of_each_small_kiln_resumes_the_same_run) {
  std::uint64_t seed = 0;
  for (const machine_config& m : crash_machines()) {
    ++seed;
    expect_same(
        {m.name, m,
         make_tape({.transactions = 120, .plain_stores = seed % 3 == 0 ? 4u : 0, .seed = seed})},
        seed, 6, 3);
  }
}

// Many stops of short runs, as the rare states of overflows and of waits last a few events.
TEST(checkpoint, at_most_events_of_an_overflowing_kiln_resumes_the_same_run) {
  for (const machine_config& m : crash_machines())
    if (m.name.starts_with("overflowing") || m.name.starts_with("two ways"))
      for (std::uint64_t seed = 1; seed <= 2; ++seed)
        expect_same({m.name, m, make_tape({.transactions = 30, .lines = 24, .seed = seed})}, seed,
                    60, 2);
}

TEST(checkpoint, of_each_design_resumes_the_same_run) {
  for (const char* design : {"native", "rlog", "ulog", "crlog", "culog", "kiln"})
    for (const char* isolation : {"htm", "mutex", "none"}) {
      const machine_config m = small_caches("kiln", design, isolation);
      const std::string tape = std::string(isolation) == "none" ? "one" : "";
      expect_same({design + std::string(", ") + isolation, m,
                   make_tape({.threads = tape.empty() ? 4u : 1u, .transactions = 150, .seed = 7})},
                  7, 5, 3);
    }
}

TEST(checkpoint, of_each_replacement_policy_resumes_the_same_run) {
  for (const char* policy : {"lru", "plru", "bip", "random"}) {
    machine_config m = small_caches("kiln", "rlog", "htm");
    m.l1.replacement = m.l2.replacement = m.l3.replacement = policy;
    expect_same({policy, m, make_tape({.transactions = 150, .seed = 3})}, 3, 5, 3);
  }
}

TEST(checkpoint, of_each_scheduler_and_device_resumes_the_same_run) {
  const auto tape = logged_tape(150);
  for (const scheduler_kind& kind : scheduler_kinds())
    for (const bool waits : {false, true}) {
      machine_config m = small_caches("dp2", "native", "htm");
      m.nonvolatile_memory.scheduler = kind.name;
      m.nonvolatile_memory.endurance_writes = 1e8;
      m.design.barriers_wait = waits && kind.fences_return;
      expect_same({std::string("dp2, ") + kind.name, m, tape}, 5, 5, 3);
    }
}

// A barrier waits for a write that is still to be sent: a few events long, so the run stops at each
// event once.
TEST(checkpoint, at_each_event_beside_barriers_resumes_the_same_run) {
  machine_config m = small_caches("dp2", "native", "none");
  m.crossbar.bytes_per_ns = 1;
  for (const scheduler_kind& kind : scheduler_kinds()) {
    if (!kind.follows_barriers) continue;
    SCOPED_TRACE(kind.name);
    m.nonvolatile_memory.scheduler = kind.name;
    const restored_run of{kind.name, m, fenced_tape(160)};
    auto whole = of.make(1);
    std::uint64_t events = 0;
    while (whole->advance(1)) ++events;
    const std::vector<std::byte> end = bytes_of(*whole);
    auto first = of.make(1);
    for (std::uint64_t at = 0; at < events; ++at) {
      auto rest = of.make(1);
      ASSERT_EQ(fault_of(*rest, bytes_of(*first)), "") << "at event " << at;
      while (rest->advance(1 << 20)) {
      }
      ASSERT_TRUE(bytes_of(*rest) == end) << "after event " << at;
      first->advance(1);
    }
  }
}

// Refreshes, windows of activates, several ranks and groups, closed pages.
TEST(checkpoint, of_each_memory_resumes_the_same_run) {
  const auto tape = mixed_tape(3000);
  for (const char* preset :
       {"ddr4-2400", "ddr5-4800", "ddr5-4800-same-bank", "optane-like", "pcm", "stt-mram"}) {
    const memory_config memory = machine_of(preset).nonvolatile_memory;
    for (const bool open_page : {true, false}) {
      machine_config m = small_caches("kiln-sram-l3", "native", "htm");
      m.nonvolatile_memory = m.volatile_memory = memory;
      m.nonvolatile_memory.open_page = open_page;
      m.nonvolatile_memory.read_queue_entries = m.nonvolatile_memory.write_queue_entries = 4;
      expect_same({preset, m, tape}, 11, 4, 3);
    }
  }
}

TEST(checkpoint, of_each_link_resumes_the_same_run) {
  const auto tape = mixed_tape(3000);
  for (const unsigned flit : {68u, 256u})
    for (const bool gpf : {true, false})
      for (const char* preset : {"ddr5-4800", "pcm"}) {
        machine_config m = small_caches("kiln-sram-l3", "native", "htm");
        m.nonvolatile_memory = machine_of(preset).nonvolatile_memory;
        memory_config& c = m.nonvolatile_memory;
        c.cxl_flit_bytes = flit, c.cxl_bytes_per_ns = 4, c.cxl_latency_ns = 40;
        c.cxl_queue_entries = 4, c.cxl_gpf = gpf;
        expect_same({std::string(preset) + " behind a link", m, tape}, 13, 4, 3);
      }
}

TEST(checkpoint, of_many_banks_resumes_the_same_run) {
  machine_config m = small_caches("kiln-sram-l3", "native", "htm");
  m.nonvolatile_memory = machine_of("ddr5-4800").nonvolatile_memory;
  m.nonvolatile_memory.ranks =
      256 / (m.nonvolatile_memory.bank_groups * m.nonvolatile_memory.banks);
  expect_same({"256 banks", m, mixed_tape(3000)}, 17, 4, 3);
}

TEST(checkpoint, of_each_prefetcher_and_of_page_walks_resumes_the_same_run) {
  for (const char* kind : {"none", "next-line", "stride"})
    for (const char* design : {"native", "rlog", "kiln"}) {
      machine_config m = small_caches("kiln", design, "htm");
      m.prefetch.kind = kind;
      if (m.prefetch.kind != "none") m.prefetch.degree = 2;
      m.tlb.l1_entries = 2, m.tlb.l1_ways = 2, m.tlb.l2_entries = 4, m.tlb.l2_ways = 2;
      const std::string name = std::string(design) + " with prefetcher " + kind;
      expect_same({name, m, make_tape({.transactions = 120, .seed = 8})}, 19, 4, 3);
      if (std::string(design) == "native") expect_same({name, m, mixed_tape(3000)}, 23, 4, 3);
    }
}

// A feed whose threads are chunks apart, one of them behind the chunks that are kept.
TEST(checkpoint, of_threads_far_apart_on_the_tape_resumes_the_same_run) {
  machine_config m = small_caches("kiln", "native", "mutex");
  expect_same({"far apart", m, uneven_tape()}, 1, 2, 3);
}

TEST(checkpoint, of_a_large_kiln_is_small_and_resumes_the_same_run) {
  const restored_run of{"kiln", machine_of("kiln"), make_tape({.transactions = 400, .seed = 2})};
  expect_same(of, 2, 1, 2);
  auto s = of.make(2);
  while (s->advance(1 << 20)) {
  }
  EXPECT_LT(bytes_of(*s).size(), 20'000u) << "its caches are nearly empty";
}

}  // namespace
}  // namespace stele::sim
