// The figures of Kiln itself (9), of the costs of its cache and memory (6, 10, 11), and of its
// overflows.
#include <bench/figures/kiln_parts.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench::kiln {
namespace {

constexpr std::array<const char*, 4> in_place = {"native", "crlog", "culog", "kiln"};
constexpr std::array<const char*, 6> all_designs = {"native", "rlog",  "ulog",
                                                    "crlog",  "culog", "kiln"};

// Multiplies the latencies of cache and memory, and the memory's timing, by `factor`.
sim::machine_config slower(sim::machine_config m, double factor) {
  for (double* latency :
       {&m.l3.read_latency_ns, &m.l3.write_latency_ns, &m.nonvolatile_memory.read_latency_ns,
        &m.nonvolatile_memory.write_latency_ns, &m.nonvolatile_memory.write_pulse_ns})
    *latency *= factor;
  for (sim::timing_rule& rule : m.nonvolatile_memory.timing) rule.latency_ns *= factor;
  return m;
}

std::string size_name(std::size_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10)
                           : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

result<> measure_sram(const sweep_options& o, chart& c) {
  const auto base = base_machine(), sram = machine_named("kiln-sram-l3");
  if (!base) return std::unexpected(base.error());
  if (!sram) return std::unexpected(sram.error());
  std::vector<system> systems = {system_of(*sram, "native", "16 MB of SRAM"),
                                 system_of(*base, "native", "64 MB of STT-MRAM")};
  systems[0].name = "sram", systems[1].name = "stt-mram";
  if (const auto ran = run_all(systems, o, c); !ran) return std::unexpected(ran.error());
  for (const element e : elements)
    c.panels.push_back(by_workload(name_of(e), "throughput over that with SRAM", systems,
                                   systems.front(), e, throughput, o));
  return {};
}

result<> measure_in_place(const sweep_options& o, chart& c) {
  static constexpr named_quantity quantities[] = {
      {"reads", cache_reads}, {"writes", cache_writes}, {"accesses", cache_accesses}};
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  const auto systems = systems_of(*base, in_place);
  std::vector<system> all;
  for (const system& s : systems)
    for (const unsigned threads : thread_counts) all.push_back(with_threads(s, threads));
  if (const auto ran = run_all(all, o, c); !ran) return std::unexpected(ran.error());
  for (const element e : elements) {
    c.panels.push_back(by_threads(name_of(e), "throughput over native's with 1 thread", systems,
                                  with_threads(systems.front(), 1), e, throughput, thread_counts,
                                  o));
    c.panels.push_back(by_workload(name_of(e) + ", 16 threads",
                                   "throughput over native's with 16 threads", systems,
                                   systems.front(), e, throughput, o));
    c.panels.push_back(by_quantity(name_of(e) + ", cache",
                                   "NV cache accesses with 16 threads, over native's", systems,
                                   systems.front(), e, quantities, o));
  }
  return {};
}

result<> measure_latency(const sweep_options& o, chart& c) {
  static constexpr unsigned factors[] = {1, 2, 4};
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  std::vector<system> all;
  for (const unsigned factor : factors) {
    const auto some = systems_of(slower(*base, factor), in_place);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (const auto ran = run_all(all, o, c); !ran) return std::unexpected(ran.error());
  for (const element e : elements) {
    panel& p = c.panels.emplace_back(panel{
        name_of(e), "times the latency", "throughput over native's at 1", {}, {}, false, true});
    for (const unsigned factor : factors) p.xs.push_back(fmt::format("{}", factor));
    for (std::size_t i = 0; i < in_place.size(); ++i) {
      series& line = p.lines.emplace_back(series_of(all[i]));
      for (std::size_t f = 0; f < std::size(factors); ++f)
        put(line, mean_ratio(all[f * in_place.size() + i], all.front(), e, throughput, o));
    }
  }
  return {};
}

result<> measure_power(const sweep_options& o, chart& c) {
  static constexpr named_quantity quantities[] = {{"processor", processor_power},
                                                  {"memory", memory_power},
                                                  {"processor, a transaction", processor_energy},
                                                  {"memory, a transaction", memory_energy}};
  const auto base = base_machine();
  if (!base) return std::unexpected(base.error());
  const auto systems = systems_of(*base, all_designs);
  if (const auto ran = run_all(systems, o, c); !ran) return std::unexpected(ran.error());
  for (const element e : elements)
    c.panels.push_back(by_quantity(name_of(e),
                                   "dynamic power, and energy of a transaction, over native's",
                                   systems, systems.front(), e, quantities, o));
  return {};
}

// The caches and the values have a 64th of their nominal size. Each thread has its own table
// without isolation, so that each thread has a transaction in progress: HTM would bound
// transactions by the private caches, a mutex would allow one at a time.
result<> measure_overflow(const sweep_options& o, chart& c) {
  static constexpr std::size_t scale = 64;
  auto m = base_machine();
  if (!m) return std::unexpected(m.error());
  for (sim::cache_config* cache : {&m->l1, &m->l2, &m->l3}) cache->size_bytes /= scale;
  m->design.isolation = "none";
  const std::size_t largest =
      std::min<std::size_t>(std::size_t{64} << 20, o.kiln_large_bytes * 128);
  std::vector<std::size_t> values;
  for (std::size_t size = std::size_t{512} << 10; size <= largest; size *= 2)
    values.push_back(size);
  const auto place = [&](std::size_t value, unsigned threads) {
    const std::uint64_t transactions =
        std::clamp<std::uint64_t>((std::size_t{1} << 30) / value, 6 * threads,
                                  std::max<std::uint64_t>(6 * threads, o.kiln_transactions / 12));
    return run_spec{{"hash", value / scale, 32, transactions, 0, threads, true}, *m};
  };
  std::vector<run_spec> places;
  for (const std::size_t value : values)
    for (const unsigned threads : thread_counts) places.push_back(place(value, threads));
  const auto ran = run_all(places, o);
  if (!ran) return std::unexpected(ran.error());
  c.complete = *ran;
  for (const auto& [name, path, y, factor] :
       {std::tuple{"share", "kiln.overflowed_transactions", "% of transactions that overflow",
                   100.0},
        {"lines", "kiln.overflowed_lines", "lines copied, of a transaction", 1.0}}) {
    panel& p = c.panels.emplace_back(panel{name, "threads x value", y, {}, {}});
    for (std::size_t sum = values.front(); sum <= values.back() * most_threads; sum *= 2)
      p.xs.push_back(size_name(sum));
    for (const unsigned threads : thread_counts) {
      series& line =
          p.lines.emplace_back(series{fmt::format("{}", threads),
                                      fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
                                      false,
                                      {}});
      for (std::size_t sum = values.front(); sum <= values.back() * most_threads; sum *= 2) {
        const std::size_t value = sum / threads;
        const bool measured = value >= values.front() && value <= values.back();
        const sim::run_result* r = measured ? result_of(place(value, threads), o) : nullptr;
        put(line, r == nullptr ? std::nullopt
                               : std::optional(factor * sim::find(*r, path)->value /
                                               sim::find(*r, "run.transactions")->value));
      }
    }
  }
  return {};
}

}  // namespace stele::bench::kiln
