// Every key of cores, caches, crossbar and design changes what a run counts, or is refused with a
// sentence. The keys of memories: sim/controller/keys_test.cc.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/config_check.h>
#include <sim/config_keys.h>
#include <sim/controller/memory_fixture.h>
#include <sim/crash.h>
#include <sim/machine.h>

#include <fstream>

namespace stele::sim {
namespace {

using testing::HasSubstr;

class keys_of_a_machine : public testing::Test {
 protected:
  // A tape for all hardware threads of the machine.
  void record_for(const machine_config& m) {
    const auto tape = make_tape(
        {.threads = m.cores.count * m.cores.threads_per_core, .transactions = 120, .lines = 512});
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(tape.data()),
               static_cast<std::streamsize>(tape.size()));
  }

  // What a run on the machine counts, and its times and energies. Empty: the run is refused, with
  // the sentence refusal_.
  std::vector<double> outcome_of(const machine_config& m) {
    const auto r = run_machine(m, {.tape = path_, .commands = {}, .progress = {}, .cancelled = {}});
    if (!r) {
      refusal_ = r.error().message;
      return {};
    }
    std::vector<double> values = {static_cast<double>(r->simulated)};
    for (const quantity& q : r->quantities)
      if (q.path != "kiln.tag_overhead") values.push_back(q.value);
    return values;
  }

  const base::scratch_directory dir_;
  const std::string path_ = dir_.file("tape");
  std::string refusal_;
};

// A preset with caches so small that lines conflict, are evicted, and overflow Kiln's.
machine_config small_machine(const char* preset, const char* design) {
  machine_config m = machine_of(preset);
  m.l1.ways = 2, m.l1.size_bytes = 4 * 64;
  m.l2.ways = 4, m.l2.size_bytes = 16 * 64;
  m.l3.ways = 4, m.l3.size_bytes = (design == std::string("kiln") ? 32 : 256) * 64;
  m.l3.banks = 2;
  m.design.name = design;
  reset_idle_keys(m);
  EXPECT_TRUE(check_machine(m)) << check_machine(m).error().message;
  return m;
}

// Another value of the key. Most are changed by rule; some need a value that the load can tell.
void change(const config_key& key) {
  const std::map<std::string, double> numbers = {
      {"cores.threads_per_core", 1},   {"cores.window_instructions", 4},
      {"cores.outstanding_misses", 1}, {"cores.store_buffer_entries", 1},
      {"design.htm_retries", 0},       {"design.transaction_ids", 16},
      {"design.overflow_at", 0},       {"tlb.l1_entries", 4}};
  const std::map<std::string, std::string> names = {{"design.name", "ulog"},
                                                    {"design.order", "relaxed"},
                                                    {"design.isolation", "mutex"},
                                                    {"prefetch.kind", "next-line"}};
  std::visit(
      [&]<class T>(T* value) {
        if constexpr (std::is_same_v<T, bool>)
          *value = !*value;
        else if constexpr (std::is_same_v<T, std::string>)
          *value = names.contains(key.path) ? names.at(key.path) : "random";
        else if constexpr (std::is_arithmetic_v<T>)
          *value = numbers.contains(key.path)             ? static_cast<T>(numbers.at(key.path))
                   : key.path.ends_with("_queue_entries") ? T{1}
                   : *value == T{}                        ? T{1}
                                                          : T{2} * *value;
      },
      key.where);
}

// The keys that this test changes.
bool is_changed_here(const std::string& path, const machine_config& m) {
  if (path.find('.') == path.npos || path.find("memory.") != path.npos) return false;
  // Of Kiln alone. l3.nonvolatile allows other designs, as the next test shows.
  return m.design.name == "kiln" || path != "l3.nonvolatile";
}

TEST_F(keys_of_a_machine, change_a_run_or_are_refused) {
  for (const auto& [preset, design] :
       {std::pair{"kiln", "kiln"}, {"kiln-sram-l3", "native"}, {"dp2", "rlog"}}) {
    machine_config m = small_machine(preset, design);
    if (m.design.name == "kiln")  // transactions are short
      m.l1.persistence_queue_entries = m.l2.persistence_queue_entries = 2;
    record_for(m);
    const std::vector<double> before = outcome_of(m);
    ASSERT_FALSE(before.empty()) << refusal_;
    machine_config other = m;
    for (const config_key& key : keys_of(other)) {
      if (!is_changed_here(key.path, m)) continue;
      other = m;
      change(key);
      if (const auto sound = check_machine(other); !sound) {
        // Another design is refused for a key that it does not have.
        EXPECT_THAT(
            sound.error().message,
            HasSubstr(key.path == "design.name" ? "design " + other.design.name : key.path));
        continue;
      }
      const std::vector<double> after = outcome_of(other);
      EXPECT_NE(after, before) << preset << ": " << key.path << " changes nothing";
      if (after.empty()) {
        EXPECT_THAT(refusal_, HasSubstr(key.path));
      }
    }
  }
}

TEST_F(keys_of_a_machine, without_effect_are_refused_with_the_reason) {
  const auto said = [](const char* design, const char* key, const char* value) {
    machine_config m = small_machine("kiln", design);
    EXPECT_TRUE(set_key(m, key, value));
    const auto sound = check_machine(m);
    return sound ? "nothing" : sound.error().message;
  };
  EXPECT_THAT(said("native", "l1.banks", "2"), HasSubstr("only accesses to the l3 wait"));
  EXPECT_THAT(said("native", "l2.nonvolatile", "true"), HasSubstr("l2.nonvolatile has no effect"));
  EXPECT_THAT(said("rlog", "design.order", "relaxed"), HasSubstr("only the design kiln has it"));
  EXPECT_THAT(said("rlog", "l1.persistence_queue_entries", "8"),
              HasSubstr("l1.persistence_queue_entries has no effect: only the design kiln"));
  EXPECT_THAT(said("kiln", "design.log_bytes", "65536"), HasSubstr("only designs with logs"));
  EXPECT_THAT(said("kiln", "l3.nonvolatile", "false"), HasSubstr("l3.nonvolatile is false"));
  EXPECT_THAT(said("rlog", "design.lock_until_durable", "true"),
              HasSubstr("only the design kiln has it"));
  EXPECT_THAT(said("rlog", "design.barriers_wait", "true"),
              HasSubstr("the scheduler fr-fcfs has no persist barriers"));
  EXPECT_EQ(said("rlog", "l3.nonvolatile", "false"), "nothing");
  EXPECT_EQ(said("rlog", "design.log_bytes", "65536"), "nothing");
}

TEST_F(keys_of_a_machine, of_prefetchers_and_translation_change_a_run_that_has_them) {
  machine_config m = small_machine("kiln-sram-l3", "native");
  m.prefetch.kind = "next-line";
  m.tlb = {.l1_entries = 2, .l1_ways = 2, .l2_entries = 4, .l2_ways = 2, .l2_latency_ns = 1};
  m.tlb.walk_levels = 2;
  ASSERT_TRUE(check_machine(m)) << check_machine(m).error().message;
  record_for(m);
  const std::vector<double> before = outcome_of(m);
  ASSERT_FALSE(before.empty()) << refusal_;
  unsigned changed = 0;
  machine_config other = m;
  for (const config_key& key : keys_of(other)) {
    if (!key.path.starts_with("prefetch.") && !key.path.starts_with("tlb.")) continue;
    other = m;
    change(key);
    if (key.path == "prefetch.kind") other.prefetch.kind = "none";
    if (const auto sound = check_machine(other); !sound) {
      EXPECT_THAT(sound.error().message, HasSubstr(key.path));
      continue;
    }
    EXPECT_NE(outcome_of(other), before) << key.path << " changes nothing";
    ++changed;
  }
  EXPECT_EQ(changed, 9u) << "all but prefetch.entries and tlb.l1_ways, which are refused";
}

TEST_F(keys_of_a_machine, prefetchers_and_translation_add_their_quantities) {
  machine_config m = small_machine("kiln-sram-l3", "native");
  record_for(m);
  const run_options once{.tape = path_, .commands = {}, .progress = {}, .cancelled = {}};
  const auto without = run_machine(m, once);
  m.prefetch.kind = "next-line", m.tlb.l1_entries = 4;
  const auto with = run_machine(m, once);
  ASSERT_TRUE(without && with);
  for (const char* path : {"prefetch.issued", "prefetch.dropped", "prefetch.useful",
                           "prefetch.late", "prefetch.useless", "tlb.l1_hits", "tlb.misses",
                           "tlb.walks", "tlb.walk_loads", "tlb.walk_time"}) {
    EXPECT_EQ(find(*without, path), nullptr) << path;
    ASSERT_NE(find(*with, path), nullptr) << path;
  }
  EXPECT_GT(find(*with, "prefetch.issued")->value, 0);
  EXPECT_EQ(find(*with, "tlb.walk_loads")->value, 4 * find(*with, "tlb.walks")->value);
}

TEST_F(keys_of_a_machine, of_prefetchers_and_translation_fit_together) {
  const auto said = [](const std::vector<std::pair<const char*, const char*>>& keys) {
    machine_config m = small_machine("kiln-sram-l3", "native");
    for (const auto& [key, value] : keys) EXPECT_TRUE(set_key(m, key, value)) << key;
    const auto sound = check_machine(m);
    return sound ? "nothing" : sound.error().message;
  };
  EXPECT_THAT(said({{"prefetch.degree", "2"}}),
              HasSubstr("prefetch.degree has no effect: prefetch.kind is none"));
  EXPECT_THAT(said({{"prefetch.kind", "next-line"}, {"prefetch.entries", "2"}}),
              HasSubstr("prefetch.entries has no effect: only the kind stride has a table"));
  EXPECT_THAT(said({{"prefetch.kind", "next-line"},
                    {"volatile_memory.capacity_bytes", "2048"},
                    {"volatile_memory.row_bytes", "64"},
                    {"volatile_memory.bank_groups", "1"},
                    {"volatile_memory.banks", "1"},
                    {"volatile_memory.channels", "1"}}),
              HasSubstr("prefetches stay in pages of 4096 bytes"));
  EXPECT_THAT(said({{"tlb.walk_levels", "3"}}),
              HasSubstr("tlb.walk_levels has no effect: tlb.l1_entries is 0"));
  EXPECT_THAT(said({{"tlb.l1_entries", "4"}, {"tlb.l2_ways", "4"}}),
              HasSubstr("tlb.l2_ways has no effect: tlb.l2_entries is 0"));
  EXPECT_THAT(said({{"tlb.l1_entries", "6"}}),
              HasSubstr("tlb.l1_entries is 6, which is no multiple of tlb.l1_ways, 4"));
  EXPECT_EQ(said({{"tlb.l1_entries", "4"},
                  {"tlb.l2_entries", "16"},
                  {"tlb.page_bytes", "2097152"},
                  {"prefetch.kind", "stride"}}),
            "nothing");
}

TEST_F(keys_of_a_machine, side_by_side_need_an_effect_on_one_design) {
  machine_config m = small_machine("kiln", "kiln");
  m.design.order = "relaxed";
  const auto both = with_designs(m, {"native", "kiln"});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->at(0).design.order, "strong");
  EXPECT_EQ(both->at(1).design.order, "relaxed");
  const auto neither = with_designs(m, {"native", "rlog"});
  ASSERT_FALSE(neither);
  EXPECT_THAT(neither.error().message, HasSubstr("design.order has no effect"));
}

}  // namespace
}  // namespace stele::sim
