// Random loads with every scheduler and device: all requests complete, every write is persistent,
// runs are repeatable.
#include <sim/controller/memory_fixture.h>
#include <sim/controller/traffic.h>
#include <sim/dp2/pcm.h>

namespace stele::sim {
namespace {

const std::vector<memory_config>& devices() {
  static const std::vector<memory_config> all = {machine_of("ddr4-2400").nonvolatile_memory,
                                                 machine_of("kiln").nonvolatile_memory,
                                                 dp2_memory("strict")};
  return all;
}

TEST(load, every_request_ends_under_every_scheduler) {
  for (const scheduler_kind& k : scheduler_kinds())
    for (memory_config c : devices())
      for (const traffic_pattern p :
           {traffic_pattern::random, traffic_pattern::stream, traffic_pattern::sparse}) {
        c.scheduler = k.name;
        const traffic_result r = *run_traffic(c, {.pattern = p,
                                                  .requests = 3000,
                                                  .write_share = 0.5,
                                                  .outstanding = 200,
                                                  .writes_per_barrier = 5});
        EXPECT_EQ(r.unfinished, 0u) << k.name;
        EXPECT_EQ(r.done.reads + r.done.forwarded_reads + r.done.writes, 3000u) << k.name;
        EXPECT_EQ(r.done.read_latency.count + r.done.write_latency.count, 3000u) << k.name;
      }
}

// A load with hot lines and logs, so that the order of writes to one line matters.
struct persisted_order final : write_observer {
  std::vector<std::pair<std::uint64_t, picoseconds>> writes;  // token and time
  std::map<std::uint64_t, std::uint64_t> last_of_line;
  bool lines_in_order = true;
  void persisted(const write_report& r) override {
    writes.emplace_back(r.req.token, r.persisted);
    const auto [at, first] = last_of_line.try_emplace(r.req.address, r.req.token);
    lines_in_order &= first || at->second < r.req.token;
    at->second = r.req.token;
  }
};

persisted_order hot_load(const memory_config& c, std::uint64_t seed) {
  event_queue events;
  auto m = *make_memory(events, c);
  persisted_order seen;
  m->observe(&seen);
  EXPECT_TRUE(m->set_ranges({{0, 1024, 1024, 1088}, {2048, 3072, 3072, 3136}}));
  std::uint64_t x = seed;
  for (std::uint64_t token = 0; token < 2000; ++token) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    request r;
    r.address = (x >> 40) % 64 * 64;
    r.kind = x >> 33 & 1 ? access::read : access::write;
    r.token = token;
    m->submit(events.now(), r);
    if ((x >> 50) % 4 == 0) m->barrier(events.now(), 0);
    for (std::uint64_t n = (x >> 55) % 4; n-- && !events.empty();) events.step();
  }
  while (!events.empty()) events.step();
  EXPECT_EQ(m->outstanding(), 0u);
  EXPECT_EQ(seen.writes.size(), m->statistics(events.now()).writes);
  return seen;
}

TEST(load, writes_to_a_line_become_persistent_in_order_and_runs_repeat) {
  for (const scheduler_kind& k : scheduler_kinds())
    for (memory_config c : devices()) {
      c.scheduler = k.name;
      c.bank_queue_entries = 4;
      c.channels = 2;
      const persisted_order seen = hot_load(c, 3);
      EXPECT_TRUE(seen.lines_in_order) << k.name << " " << c.technology;
      EXPECT_EQ(seen.writes, hot_load(c, 3).writes) << k.name;
      EXPECT_NE(seen.writes, hot_load(c, 4).writes) << k.name;
    }
}

}  // namespace
}  // namespace stele::sim
