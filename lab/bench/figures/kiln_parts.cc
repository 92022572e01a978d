// Creates systems and run specifications, and computes means of ratios over the workloads.
#include <bench/figures/kiln_parts.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stele::bench::kiln {
namespace {

double value_at(const sim::run_result& r, std::string_view path) {
  const sim::quantity* q = sim::find(r, path);
  return q == nullptr ? std::nan("") : q->value;
}

tape_spec tape_of(const std::string& workload, element e, const system& s, const sweep_options& o) {
  const bool small = e == element::small;
  return {workload,
          small ? 512 : o.kiln_large_bytes,
          small ? o.kiln_keys : o.kiln_large_keys,
          small ? o.kiln_transactions : o.kiln_large_transactions,
          s.cold ? 0 : o.kiln_written_before,
          s.threads};
}

}  // namespace

std::string name_of(element e) {
  return e == element::small ? "small" : "large";
}

std::span<const char* const> workloads_of(const sweep_options& o) {
  return std::span(workloads).first(std::min(o.kiln_workloads, workloads.size()));
}

result<sim::machine_config> base_machine() {
  return machine_named("kiln");
}

system system_of(const sim::machine_config& base, std::string design, std::string label,
                 unsigned threads) {
  system s{design, std::move(label), base, threads, false};
  s.machine.design.name = std::move(design);
  return s;
}

std::vector<system> systems_of(const sim::machine_config& base,
                               std::span<const char* const> designs, unsigned threads) {
  std::vector<system> all;
  for (const char* design : designs) all.push_back(system_of(base, design, design, threads));
  return all;
}

system with_threads(system s, unsigned threads) {
  s.threads = threads;
  return s;
}

run_spec run_spec_of(const system& s, const std::string& workload, element e,
                     const sweep_options& o) {
  run_spec p{tape_of(workload, e, s, o), s.machine};
  p.machine.design.isolation = e == element::small ? "htm" : "mutex";
  return p;
}

result<bool> run_all(std::span<const system> systems, const sweep_options& o, chart& c) {
  std::vector<run_spec> places;
  for (const system& s : systems)
    for (const element e : elements)
      for (const char* workload : workloads_of(o)) places.push_back(run_spec_of(s, workload, e, o));
  const auto ran = run_all(places, o);
  if (ran && !*ran) c.complete = false;
  return ran;
}

double throughput(const sim::run_result& r) {
  return value_at(r, "rate.transactions");
}
double memory_reads(const sim::run_result& r) {
  return value_at(r, "nonvolatile_memory.reads");
}
double memory_writes(const sim::run_result& r) {
  return value_at(r, "nonvolatile_memory.writes");
}
double memory_traffic(const sim::run_result& r) {
  return memory_reads(r) + memory_writes(r);
}
double cache_reads(const sim::run_result& r) {
  return value_at(r, "l3.reads");
}
double cache_writes(const sim::run_result& r) {
  return value_at(r, "l3.writes");
}
double cache_accesses(const sim::run_result& r) {
  return cache_reads(r) + cache_writes(r);
}
double processor_power(const sim::run_result& r) {
  return value_at(r, "power.processor");
}
double memory_power(const sim::run_result& r) {
  return value_at(r, "power.memory");
}
double processor_energy(const sim::run_result& r) {
  return value_at(r, "energy.processor");
}
double memory_energy(const sim::run_result& r) {
  return value_at(r, "energy.memory");
}

std::optional<double> one(const system& s, const std::string& workload, element e, quantity_of what,
                          const sweep_options& o) {
  const sim::run_result* r = result_of(run_spec_of(s, workload, e, o), o);
  return r == nullptr ? std::nullopt : std::optional(what(*r));
}

std::optional<double> ratio(const system& s, const system& base, const std::string& workload,
                            element e, quantity_of what, const sweep_options& o) {
  const auto a = one(s, workload, e, what, o), b = one(base, workload, e, what, o);
  if (!a || !b || !std::isfinite(*a / *b)) return std::nullopt;
  return *a / *b;
}

std::optional<double> mean_ratio(const system& s, const system& base, element e, quantity_of what,
                                 const sweep_options& o) {
  double sum = 0;
  for (const char* workload : workloads_of(o)) {
    const auto r = ratio(s, base, workload, e, what, o);
    if (!r) return std::nullopt;
    sum += *r;
  }
  return sum / static_cast<double>(workloads_of(o).size());
}

series series_of(const system& s) {
  return {s.name, s.label, false, {}};
}

void put(series& s, const std::optional<double>& value) {
  s.points.push_back(value ? std::optional(known(*value)) : std::nullopt);
}

panel by_workload(std::string name, std::string y, std::span<const system> systems,
                  const system& base, element e, quantity_of what, const sweep_options& o) {
  panel p{std::move(name),
          "workload",
          std::move(y),
          {workloads_of(o).begin(), workloads_of(o).end()},
          {},
          true,
          true};
  p.xs.emplace_back("mean");
  for (const system& s : systems) {
    series& line = p.lines.emplace_back(series_of(s));
    for (const char* workload : workloads_of(o)) put(line, ratio(s, base, workload, e, what, o));
    put(line, mean_ratio(s, base, e, what, o));
  }
  return p;
}

panel by_threads(std::string name, std::string y, std::span<const system> systems,
                 const system& base, element e, quantity_of what, std::span<const unsigned> counts,
                 const sweep_options& o) {
  panel p{std::move(name), "threads", std::move(y), {}, {}, false, true};
  for (const unsigned threads : counts) p.xs.push_back(fmt::format("{}", threads));
  for (const system& s : systems) {
    series& line = p.lines.emplace_back(series_of(s));
    for (const unsigned threads : counts)
      put(line, mean_ratio(with_threads(s, threads), base, e, what, o));
  }
  return p;
}

panel by_quantity(std::string name, std::string y, std::span<const system> systems,
                  const system& base, element e, std::span<const named_quantity> quantities,
                  const sweep_options& o) {
  panel p{std::move(name), "quantity", std::move(y), {}, {}, true, true};
  for (const named_quantity& q : quantities) p.xs.emplace_back(q.name);
  for (const system& s : systems) {
    series& line = p.lines.emplace_back(series_of(s));
    for (const named_quantity& q : quantities) put(line, mean_ratio(s, base, e, q.what, o));
  }
  return p;
}

}  // namespace stele::bench::kiln
