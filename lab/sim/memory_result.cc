// Counts of a memory as quantities of a result.
#include <sim/device/retention.h>
#include <sim/memory_result.h>

namespace stele::sim {
namespace {

memory_statistics statistics_of(memory_system& m, const memory_part& part) {
  memory_statistics s = m.statistics(part.until);
  s.subtract(part.before);
  return s;
}

void add_counts(run_result& r, const std::string& name, const memory_statistics& s) {
  for (const auto& [what, value] : {std::pair{"reads", s.reads},
                                    {"writes", s.writes},
                                    {"forwarded_reads", s.forwarded_reads},
                                    {"row_hits", s.row_hits},
                                    {"row_misses", s.row_misses},
                                    {"row_conflicts", s.row_conflicts},
                                    {"activates", s.activates},
                                    {"precharges", s.precharges},
                                    {"refreshes", s.refreshes}})
    r.add(name + "." + what, static_cast<double>(value));
  r.add(name + ".bytes", static_cast<double>(s.bytes), "bytes");
}

void add_latency(run_result& r, const std::string& path, const span_statistics& spans,
                 const time_histogram& histogram) {
  r.add(path, spans.mean_ns(), "ns");
  r.add(path + "_p50", histogram.percentile_ns(0.5), "ns");
  r.add(path + "_p99", histogram.percentile_ns(0.99), "ns");
}

void add_energy(run_result& r, const std::string& path, const memory_energy& e) {
  for (const auto& [part, pj] : {std::pair{"", e.total_pj()},
                                 {"_activate", e.activate_pj},
                                 {"_read", e.read_pj},
                                 {"_write", e.write_pj},
                                 {"_refresh", e.refresh_pj},
                                 {"_background", e.background_pj}})
    r.add(path + part, pj / 1000, "nJ");
}

}  // namespace

// The mean length of a queue is the sum of the waits in it over the time (Little's law).
void add_memory(run_result& r, const std::string& name, memory_system& m, const memory_part& part) {
  const memory_statistics s = statistics_of(m, part);
  const memory_config& c = m.config();
  const double ps = static_cast<double>(part.until - part.from);
  const double channels = c.controllers * c.channels,
               banks = channels * c.ranks * c.bank_groups * c.banks;
  const auto share = [&](double sum, double of) { return ps == 0 ? 0 : sum / ps / of; };
  add_counts(r, name, s);
  add_energy(r, name + ".energy", energy_of(s, c));
  r.add(name + ".bandwidth", share(static_cast<double>(s.bytes) * 1000, 1), "GB/s");
  add_latency(r, name + ".read_latency", s.read_latency, s.read_latencies);
  add_latency(r, name + ".write_latency", s.write_latency, s.write_latencies);
  r.add(name + ".read_queue", share(static_cast<double>(s.read_wait.sum_ps), channels),
        "requests a channel");
  r.add(name + ".write_queue", share(static_cast<double>(s.write_wait.sum_ps), channels),
        "requests a channel");
  for (const auto& [path, kind] :
       {std::pair{".read_queue_longest", access::read}, {".write_queue_longest", access::write}})
    r.add(name + path, static_cast<double>(m.longest_queue(kind, part.from)),
          "requests of a channel");
  if (c.cxl_flit_bytes != 0) {
    r.add(name + ".cxl.read_latency", s.link_read_latency.mean_ns(), "ns");
    r.add(name + ".cxl.write_latency", s.link_write_latency.mean_ns(), "ns");
    r.add(name + ".cxl.credit_wait", s.link_credit_wait.mean_ns(), "ns");
    r.add(name + ".cxl.to_device", 100 * share(static_cast<double>(s.link_to_device_ps), 1), "%");
    r.add(name + ".cxl.to_host", 100 * share(static_cast<double>(s.link_to_host_ps), 1), "%");
  }
  r.add(name + ".busy_banks", 100 * share(static_cast<double>(s.bank_busy_ps), banks), "%");
}

void add_wear(run_result& r, const std::string& name, const memory_system& m, picoseconds run) {
  const memory_config& c = m.config();
  if (c.endurance_writes == 0) return;
  const wear_counts& w = m.wear();
  const auto add = [&](const char* what, double value, const char* unit = "") {
    r.add(name + ".wear." + what, value, unit);
  };
  add("log_records", static_cast<double>(w.log_records), "writes");
  add("commit_lines", static_cast<double>(w.commit_lines), "writes");
  add("data", static_cast<double>(w.data), "writes");
  add("lines", static_cast<double>(w.lines), "lines");
  add("most_writes", static_cast<double>(w.most_writes), "writes");
  add("most_worn_line", static_cast<double>(w.most_worn_line), "bytes");
  const double writes = static_cast<double>(w.logs() + w.data);
  if (writes == 0) return;
  const double years = static_cast<double>(run) * 1e-12 / (365.25 * 24 * 3600),
               lines = static_cast<double>(c.capacity_bytes / line_bytes);
  add("lifetime", c.endurance_writes / static_cast<double>(w.most_writes) * years, "years");
  add("lifetime_levelled", c.endurance_writes * lines / writes * years, "years");
  if (c.technology != "pcm") return;
  const std::uint64_t as_data = c.truncation_retention == "data" ? w.truncations : 0;
  const double logs = static_cast<double>(w.logs() - as_data) / writes,
               log_speedup = *speedup_for(c, c.log_retention_s),
               data_speedup = *speedup_for(c, c.data_retention_s);
  add("longer_by_equation_1", 100 * (endurance(logs, log_speedup, data_speedup) - 1), "%");
  add("longer_by_iterations", 100 * (endurance_by_iterations(logs, log_speedup, data_speedup) - 1),
      "%");
}

void add_histograms(run_result& r, const std::string& name, memory_system& m,
                    const memory_part& part) {
  const memory_statistics s = statistics_of(m, part);
  for (const auto& [what, histogram] :
       {std::pair{".read_latency", &s.read_latencies}, {".write_latency", &s.write_latencies}}) {
    latency_histogram& h = r.histograms.emplace_back(name + what);
    for (const time_class& c : histogram->classes())
      h.classes.push_back(
          {static_cast<double>(c.from) / 1000, static_cast<double>(c.below) / 1000, c.count});
  }
}

}  // namespace stele::sim
