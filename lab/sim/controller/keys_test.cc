// Every key of a memory changes what a run does, or is refused with a sentence.
#include <gmock/gmock.h>
#include <sim/config_keys.h>
#include <sim/controller/memory_fixture.h>
#include <sim/memory_result.h>

namespace stele::sim {
namespace {

// What a run does: the completions, commands, requests with room, energy and lifetime of a load
// with hot rows, hot lines, a log, barriers, and gaps of all lengths; at its end a record, a commit
// and a truncation. Addresses reach beyond the preset's capacity, `capacity_bytes`.
using outcome =
    std::tuple<std::map<unsigned, picoseconds>, std::size_t, std::size_t, double, double>;

outcome outcome_of(const memory_config& c, std::uint64_t capacity_bytes) {
  memory_fixture bed(c);
  EXPECT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  std::uint64_t x = 7;
  std::size_t rooms = 0;  // requests that found room in their queue
  for (unsigned i = 0; i < 6000; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t hot = (x >> 40) % 512 * line_bytes, far = (x >> 50 & 63) << 14,
                        log = (x >> 56) % 65 * line_bytes;
    const std::uint64_t place[] = {hot, hot + far, hot + capacity_bytes, log};
    const access kind = (x >> 33 & 1) ? access::read : access::write;
    rooms += bed.memory->has_room({.address = place[x >> 36 & 3], .kind = kind});
    bed.submit(kind, place[x >> 36 & 3]);
    if ((x >> 45 & 15) == 0) bed.barrier();
    // From a nanosecond to 32 microseconds, so that queues of any device fill and empty.
    if (i % 32 == 31) bed.run_until(bed.events.now() + (picoseconds{1000} << (x >> 60)));
  }
  for (const std::uint64_t address : {0, 4096, 4096}) bed.submit(access::write, address);
  bed.run();
  EXPECT_EQ(bed.completed.size(), 6003u);
  run_result r;
  add_wear(r, "memory", *bed.memory, bed.events.now());
  const quantity* lifetime = find(r, "memory.wear.lifetime");
  return {bed.completed, bed.commands.size(), rooms,
          bed.memory->energy(bed.events.now()).total_pj(),
          lifetime == nullptr ? 0 : lifetime->value};
}

// Another value of the key. Most are changed by rule; some need a value that the load can tell.
void change(const std::string& field, memory_config& c, const config_key& key) {
  const std::map<std::string, double> numbers = {
      {"write_drain_from", 0.6},  {"write_drain_to", 0},
      {"data_retention_s", 1e6},  {"log_retention_s", 1e6},
      {"starvation_limit", 1},    {"read_queue_entries", 2},
      {"write_queue_entries", 8}, {"bank_queue_entries", 1},
      {"idd2n_ma", 35},           {"idd3n_ma", 44}};
  const std::map<std::string, std::string> names = {
      {"refresh", "same-bank"},
      {"truncation_retention", "data"},
      {"technology", c.technology == "dram" ? "pcm" : "dram"},
      {"scheduler", c.scheduler == "fr-fcfs" ? "fcfs" : "fr-fcfs"},
      // A hash makes the second the same as the first of dp2, whose rows have one line.
      {"mapping", c.bank_hash ? "row-bank-column-rank-channel" : "bank-rank-row-column-channel"}};
  std::visit(
      [&]<class T>(T* value) {
        if constexpr (std::is_same_v<T, bool>)
          *value = !*value;
        else if constexpr (std::is_same_v<T, std::string>)
          *value = names.at(field);
        else if constexpr (std::is_arithmetic_v<T>)
          *value = numbers.contains(field) ? static_cast<T>(numbers.at(field))
                   : *value == T{}         ? T{500}
                                           : T{2} * *value;
        else if constexpr (std::is_same_v<T, std::vector<timing_rule>>)
          for (timing_rule& r : *value) r.latency_ns += 10;
        else if constexpr (std::is_same_v<T, std::vector<retention_row>>) {
          for (retention_row& r : *value) r.speedup *= 2;
          if (value->empty()) value->push_back({1e6, 1.2});
        }
      },
      key.where);
}

TEST(keys, each_key_of_a_memory_changes_a_run_or_is_refused) {
  const std::string section = "nonvolatile_memory.";
  for (const auto& [preset, scheduler] : {std::pair{"ddr4-2400", "rules"},
                                          {"kiln", "rules"},
                                          {"dp2", "rules"},
                                          {"ddr4-2400", "fcfs"},
                                          {"dp2", "strict"}}) {
    machine_config m = machine_of(preset);
    m.nonvolatile_memory.scheduler = scheduler;
    m.nonvolatile_memory.write_queue_entries = 64;  // so that few writes begin and end a drain
    if (m.nonvolatile_memory.scheduler != "fcfs") m.nonvolatile_memory.write_drain_from = 0.5;
    const std::uint64_t capacity = m.nonvolatile_memory.capacity_bytes;
    const outcome before = outcome_of(m.nonvolatile_memory, capacity);
    machine_config other = m;
    for (const config_key& key : keys_of(other)) {
      if (!key.path.starts_with(section)) continue;
      const std::string field = key.path.substr(section.size());
      other.nonvolatile_memory = m.nonvolatile_memory;
      change(field, other.nonvolatile_memory, key);
      if (!check_machine(other)) continue;
      EXPECT_TRUE(outcome_of(other.nonvolatile_memory, capacity) != before)
          << preset << ", " << scheduler << ": " << field << " changes nothing";
    }
  }
}

}  // namespace
}  // namespace stele::sim
