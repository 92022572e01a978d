// The figures of systems with logs: in memory (1, 7) and in a nonvolatile cache (7, 8).
#include <bench/figures/kiln_parts.h>
#include <fmt/format.h>

namespace stele::bench::kiln {
namespace {

constexpr std::array<const char*, 5> with_logs = {"native", "rlog", "ulog", "crlog", "culog"};

// wait: fences wait until earlier writes are durable; otherwise they cost nothing.
sim::machine_config with_fences(sim::machine_config m, bool wait) {
  m.design.fences_wait = wait;
  return m;
}
std::string fences(bool wait) {
  return wait ? "fences wait" : "fences cost nothing";
}

// The native system has no fences, so its runs are the same for both values of `wait` and run once.
std::vector<system> systems_with_logs(const sim::machine_config& base, bool wait) {
  auto all = systems_of(with_fences(base, wait), with_logs);
  all.front().machine = system_of(base, "native", "native").machine;
  return all;
}

// Where fences cost nothing, only the numbers of threads that the text mentions, to save time.
std::span<const unsigned> threads_with(bool wait) {
  static constexpr unsigned spoken_of[] = {1, 2, most_threads};
  return wait ? std::span<const unsigned>(thread_counts) : std::span<const unsigned>(spoken_of);
}

// Runs all that figures 7 and 8 need. Returns false when interrupted.
result<bool> run_logs(const sim::machine_config& base, const sweep_options& o, chart& c) {
  std::vector<system> all;
  for (const bool wait : {true, false}) {
    for (const system& s : systems_with_logs(base, wait))
      for (const unsigned threads : threads_with(wait)) all.push_back(with_threads(s, threads));
  }
  return run_all(all, o, c);
}

// The mean of two series, place by place.
series mean_of(const series& a, const series& b, std::string name, std::string label) {
  series s{std::move(name), std::move(label), false, {}};
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    const bool both = a.points[i] && b.points[i];
    put(s, both ? std::optional((a.points[i]->median + b.points[i]->median) / 2) : std::nullopt);
  }
  return s;
}

// The lines that a transaction moves between cache and memory.
panel lines_moved(element e, std::span<const system> systems, const sweep_options& o) {
  panel p{name_of(e) + ", lines", "quantity", "lines of a transaction, mean of the workloads",
          {"reads", "writes"},    {},         true};
  for (const system& s : systems) {
    series& line = p.lines.emplace_back(series_of(s));
    for (const quantity_of what : {memory_reads, memory_writes}) {
      double sum = 0;
      bool all = true;
      for (const char* workload : workloads_of(o)) {
        const sim::run_result* r = result_of(run_spec_of(s, workload, e, o), o);
        all = all && r != nullptr;
        if (r != nullptr) sum += what(*r) / sim::find(*r, "run.transactions")->value;
      }
      put(line,
          all ? std::optional(sum / static_cast<double>(workloads_of(o).size())) : std::nullopt);
    }
  }
  return p;
}

}  // namespace

result<> measure_logging(const sweep_options& o, chart& c) {
  static constexpr std::array<const char*, 3> designs = {"native", "rlog", "ulog"};
  static constexpr named_quantity quantities[] = {{"throughput", throughput},
                                                  {"reads", memory_reads},
                                                  {"writes", memory_writes},
                                                  {"traffic", memory_traffic}};
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  std::vector<panel> moved;
  for (const bool wait : {true, false}) {
    auto systems = systems_of(with_fences(*base, wait), designs);
    systems.front().machine = system_of(*base, "native", "native").machine;
    if (const auto ran = run_all(systems, o, c); !ran) return std::unexpected(ran.error());
    for (const element e : elements) {
      panel& p = c.panels.emplace_back(by_quantity(fmt::format("{}, {}", name_of(e), fences(wait)),
                                                   "over native's", systems, systems.front(), e,
                                                   quantities, o));
      p.lines.push_back(mean_of(p.lines[1], p.lines[2], "persistent", "persistent memory (mean)"));
      if (wait) moved.push_back(lines_moved(e, systems, o));
    }
  }
  c.panels.insert(c.panels.end(), moved.begin(), moved.end());
  return {};
}

result<> measure_logs_in_cache(const sweep_options& o, chart& c) {
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  if (const auto ran = run_logs(*base, o, c); !ran) return std::unexpected(ran.error());
  for (const bool wait : {true, false}) {
    const auto systems = systems_with_logs(*base, wait);
    const system first = with_threads(systems.front(), 1);
    for (const element e : elements) {
      const std::string name = fmt::format("{}, {}", name_of(e), fences(wait));
      c.panels.push_back(by_threads(name, "throughput over native's with 1 thread", systems, first,
                                    e, throughput, threads_with(wait), o));
      c.panels.push_back(by_workload(name + ", 16 threads",
                                     "throughput over native's with 16 threads", systems,
                                     systems.front(), e, throughput, o));
      c.panels.push_back(by_workload(
          name + ", traffic", "lines read and written of NV memory with 16 threads, over native's",
          systems, systems.front(), e, memory_traffic, o));
    }
  }
  return {};
}

result<> measure_gap(const sweep_options& o, chart& c) {
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  if (const auto ran = run_logs(*base, o, c); !ran) return std::unexpected(ran.error());
  for (const bool wait : {true, false})
    for (const element e : elements) {
      const auto systems = systems_with_logs(*base, wait);
      panel& p = c.panels.emplace_back(panel{fmt::format("{}, {}", name_of(e), fences(wait)),
                                             "threads",
                                             "% below native's throughput with as many threads",
                                             {},
                                             {},
                                             false,
                                             true});
      for (const unsigned threads : threads_with(wait)) p.xs.push_back(fmt::format("{}", threads));
      for (const system& s : std::span(systems).subspan(3)) {
        series& line = p.lines.emplace_back(series_of(s));
        for (const unsigned threads : threads_with(wait)) {
          const auto r = mean_ratio(with_threads(s, threads),
                                    with_threads(systems.front(), threads), e, throughput, o);
          put(line, r ? std::optional(100 * (1 - *r)) : std::nullopt);
        }
      }
    }
  return {};
}

}  // namespace stele::bench::kiln
