// Not a figure of the text: the sensitivity of the results to values that the text does not state.
#include <bench/figures/kiln_parts.h>
#include <sim/config_check.h>

namespace stele::bench::kiln {
namespace {

struct setting {
  const char* name;
  void (*apply)(sim::machine_config& m);
  bool cold = false;
};
constexpr setting settings[] = {
    {"as it is", [](sim::machine_config&) {}},
    {"8 banks of the L3", [](sim::machine_config& m) { m.l3.banks = 8; }},
    {"16 banks of the L3", [](sim::machine_config& m) { m.l3.banks = 16; }},
    {"logs of 64 KiB", [](sim::machine_config& m) { m.design.log_bytes = 65536; }},
    {"cold caches", [](sim::machine_config&) {}, true},
    {"cold caches, logs of 64 KiB", [](sim::machine_config& m) { m.design.log_bytes = 65536; },
     true},
    {"log lines read first", [](sim::machine_config& m) { m.design.log_lines_fetched = true; }},
    {"fences cost nothing", [](sim::machine_config& m) { m.design.fences_wait = false; }},
    {"relaxed order", [](sim::machine_config& m) { m.design.order = "relaxed"; }},
    // With strong order: one uncommitted transaction of a thread.
    {"16 transaction ids", [](sim::machine_config& m) { m.design.transaction_ids = 16; }},
    {"FIFOs of 1,000 in l1", [](sim::machine_config& m) { m.l1.persistence_queue_entries = 1000; }},
    {"FIFOs of 60,000 in l1",
     [](sim::machine_config& m) { m.l1.persistence_queue_entries = 60'000; }},
    {"the same, lock until durable",
     [](sim::machine_config& m) {
       m.l1.persistence_queue_entries = 60'000;
       m.design.lock_until_durable = true;
     }},
    {"write queue of 32",
     [](sim::machine_config& m) { m.nonvolatile_memory.write_queue_entries = 32; }},
    {"write queue of 256",
     [](sim::machine_config& m) { m.nonvolatile_memory.write_queue_entries = 256; }},
    {"banks hashed by the row",
     [](sim::machine_config& m) { m.nonvolatile_memory.bank_hash = true; }},
    {"each write to the cells",
     [](sim::machine_config& m) { m.nonvolatile_memory.write_back_rows = false; }},
    {"no write pulse",
     [](sim::machine_config& m) {
       m.nonvolatile_memory.write_back_rows = false;
       m.nonvolatile_memory.write_pulse_ns = 0;
     }},
};
constexpr std::array<const char*, 4> designs = {"native", "rlog", "crlog", "kiln"};

// A setting that has no effect on a design leaves it as it is, so that no identical machine runs
// twice.
std::vector<system> systems_with(const setting& s, const sim::machine_config& base) {
  auto all = systems_of(base, designs);
  for (system& one : all) {
    s.apply(one.machine);
    one.cold = s.cold;
    sim::reset_idle_keys(one.machine);
  }
  return all;
}

std::array<panel, 2> panels_of(element e, const sim::machine_config& base, const sweep_options& o) {
  const std::string size = name_of(e);
  std::array both = {
      panel{size, "setting", "throughput over native's with the same setting", {}, {}, true, true},
      panel{size + ", over the machine as it is",
            "setting",
            "throughput over native's on the machine as it is",
            {},
            {},
            true,
            true}};
  const auto as_it_is = systems_with(settings[0], base);
  for (panel& p : both)
    for (const system& one : as_it_is) p.lines.push_back(series_of(one));
  for (const setting& s : settings) {
    const auto systems = systems_with(s, base);
    const system* const natives[] = {&systems.front(), &as_it_is.front()};
    for (std::size_t i = 0; i < both.size(); ++i) {
      both[i].xs.emplace_back(s.name);
      for (std::size_t line = 0; line < systems.size(); ++line)
        put(both[i].lines[line], mean_ratio(systems[line], *natives[i], e, throughput, o));
    }
  }
  return both;
}

}  // namespace

result<> measure_sensitivity(const sweep_options& o, chart& c) {
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  std::vector<system> all;
  for (const setting& s : settings)
    for (system& one : systems_with(s, *base)) all.push_back(std::move(one));
  if (const auto ran = run_all(all, o, c); !ran) return std::unexpected(ran.error());
  for (const element e : elements)
    for (panel& p : panels_of(e, *base, o)) c.panels.push_back(std::move(p));
  return {};
}

}  // namespace stele::bench::kiln
