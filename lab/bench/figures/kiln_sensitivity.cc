// Not a figure of the text: the sensitivity of the results to values that the text does not state.
#include <bench/figures/kiln_parts.h>

namespace stele::bench::kiln {
namespace {

struct setting {
  const char* name;
  void (*apply)(sim::machine_config& m);
};
constexpr setting settings[] = {
    {"as it is", [](sim::machine_config&) {}},
    {"8 banks of the L3", [](sim::machine_config& m) { m.l3.banks = 8; }},
    {"16 banks of the L3", [](sim::machine_config& m) { m.l3.banks = 16; }},
    {"logs of 64 KiB", [](sim::machine_config& m) { m.design.log_bytes = 65536; }},
    {"log lines read first", [](sim::machine_config& m) { m.design.log_lines_fetched = true; }},
    {"fences cost nothing", [](sim::machine_config& m) { m.design.fences_wait = false; }},
    {"relaxed order", [](sim::machine_config& m) { m.design.order = "relaxed"; }},
};
constexpr std::array<const char*, 4> designs = {"native", "rlog", "crlog", "kiln"};

// A setting of logs changes nothing for a design without logs, and the order of commits changes
// nothing for a design other than Kiln. Such systems keep the base values, so that no identical
// machine runs twice.
std::vector<system> systems_with(const setting& s, const sim::machine_config& base) {
  auto all = systems_of(base, designs);
  for (system& one : all) {
    const sim::design_config before = one.machine.design;
    s.apply(one.machine);
    sim::design_config& design = one.machine.design;
    const bool logs = one.name == "rlog" || one.name == "crlog";
    if (!logs)
      design.log_bytes = before.log_bytes, design.log_lines_fetched = before.log_lines_fetched,
      design.fences_wait = before.fences_wait;
    if (one.name != "kiln") design.order = before.order;
  }
  return all;
}

}  // namespace

result<> measure_sensitivity(const sweep_options& o, chart& c) {
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  std::vector<run_spec> places;
  for (const setting& s : settings)
    for (const system& one : systems_with(s, *base))
      for (const char* workload : workloads_of(o))
        places.push_back(run_spec_of(one, workload, element::small, o));
  const auto ran = run_all(places, o);
  if (!ran) return std::unexpected(ran.error());
  c.complete = *ran;
  panel over_same{"small", "setting", "throughput over native's with the same setting",
                  {},      {},        true};
  panel over_base{"small, over the machine as it is",
                  "setting",
                  "throughput over native's on the machine as it is",
                  {},
                  {},
                  true};
  const auto as_it_is = systems_with(settings[0], *base);
  for (const system& one : as_it_is)
    for (panel* p : {&over_same, &over_base}) p->lines.push_back(series_of(one));
  for (const setting& s : settings) {
    const auto systems = systems_with(s, *base);
    over_same.xs.emplace_back(s.name), over_base.xs.emplace_back(s.name);
    for (std::size_t i = 0; i < systems.size(); ++i) {
      put(over_same.lines[i],
          mean_ratio(systems[i], systems.front(), element::small, throughput, o));
      put(over_base.lines[i],
          mean_ratio(systems[i], as_it_is.front(), element::small, throughput, o));
    }
  }
  c.panels = {std::move(over_same), std::move(over_base)};
  return {};
}

}  // namespace stele::bench::kiln
