// The figures of transactions on emulated banks of phase-change memory (medium pcm).
#include <bench/figures/dp2.h>
#include <bench/figures/dp2_parts.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench::dp2 {
namespace {

// What the charging rule adds to the medium.
std::string waits_of(const sweep_options& o) {
  return find_charge(dp2_charges(), o.charge)->media;
}

entry on_pcm(std::string name, std::string label, const char* mechanism, std::string media) {
  entry e{std::move(name), std::move(label), mechanism};
  e.own = [media = std::move(media)](task& t) { t.media = media; };
  return e;
}

task task_on(const std::string& workload, std::size_t keys) {
  task t;
  t.workload = workload;
  t.parameters.keys = keys;
  return t;
}

sweep by_value_size(const sweep_options& o, std::vector<entry> entries, std::string panel_name) {
  return {task_on("hash", o.large_keys),
          "bytes of a value",
          value_axis(),
          [](task& t, std::size_t place) { t.parameters.value_size = value_sizes[place]; },
          std::move(entries),
          {transactions_per_s(std::move(panel_name))}};
}

sweep by_workload(const sweep_options& o, std::vector<entry> entries, std::string panel_name) {
  return {task_on("", o.large_keys),
          "workload",
          workload_axis(),
          [](task& t, std::size_t place) { t.workload = workloads[place]; },
          std::move(entries),
          {transactions_per_s(std::move(panel_name))},
          true};
}

// Computes shares of time from throughputs: with writes to logs (nearly) free, and with all writes
// free.
panel shares_of(const panel& rates, std::string name) {
  panel p{std::move(name), rates.x, "% of a transaction's time", rates.xs, {}, rates.bars, true};
  p.lines = {empty_series("log", "log", rates.xs.size()),
             empty_series("data", "data", rates.xs.size()),
             empty_series("others", "others", rates.xs.size()),
             empty_series("persist", "log and data", rates.xs.size())};
  for (std::size_t i = 0; i < rates.xs.size(); ++i) {
    const auto all = rates.find("all")->points[i], no_log = rates.find("no log")->points[i],
               none = rates.find("none")->points[i];
    if (!all || !no_log || !none) continue;
    using values = std::span<const double>;  // of all, no log, none
    const auto share = [&](std::size_t line, double (*of)(values)) {
      p.lines[line].points[i] = combined({&*all, &*no_log, &*none}, of);
    };
    share(0, [](values v) { return 100 * (1 - v[0] / v[1]); });
    share(1, [](values v) { return 100 * (v[0] / v[1] - v[0] / v[2]); });
    share(2, [](values v) { return 100 * v[0] / v[2]; });
    share(3, [](values v) { return 100 * (1 - v[0] / v[2]); });
  }
  return p;
}

}  // namespace

std::vector<entry> systems(const sweep_options& o) {
  const std::string waits = waits_of(o);
  return {on_pcm("base", "ETL-Base", "base", "pcm:strict" + waits),
          on_pcm("tornbit", "ETL-Tornbit", "redo", "pcm:strict" + waits),
          on_pcm("differential", "Differential-P", "base", "pcm:rules" + waits),
          on_pcm("dual", "Dual-P", "base", "pcm:strict:1.7" + waits),
          on_pcm("both", "NVRAM-DP", "base", "pcm:rules:1.7" + waits)};
}

result<> measure_breakdown(const sweep_options& o, chart& c) {
  const std::vector<entry> entries = {
      on_pcm("all", "as it is", "base", "pcm:strict:waits"),
      on_pcm("no log", "writes to logs 100 times faster", "base", "pcm:strict:100:waits"),
      on_pcm("none", "no added latency", "base", "adr")};
  if (auto done = run(by_workload(o, entries, "workloads, throughput"), o, c); !done) return done;
  c.panels.push_back(shares_of(c.panels.back(), "workloads"));
  if (!c.complete) return {};
  if (auto done = run(by_value_size(o, entries, "value sizes, throughput"), o, c); !done)
    return done;
  c.panels.push_back(shares_of(c.panels.back(), "value sizes"));
  std::ranges::rotate(c.panels, c.panels.begin() + 1);
  return {};
}

result<> measure_retention(const sweep_options& o, chart& c) {
  std::vector<entry> entries;
  for (const sim::retention_row& r : sim::dp2_memory("strict").retention)
    entries.push_back(on_pcm(fmt::format("{:.0e}", r.retention_s),
                             fmt::format("{:.0e} s", r.retention_s), "base",
                             fmt::format("pcm:strict:{}{}", r.speedup, waits_of(o))));
  if (auto done = run(by_value_size(o, entries, "throughput"), o, c); !done) return done;
  c.panels.insert(c.panels.begin(),
                  relative_to(c.panels.front(), "1e+07", "over a retention of 10^7 s"));
  return {};
}

result<> measure_value_sizes(const sweep_options& o, chart& c) {
  if (auto done = run(by_value_size(o, systems(o), "throughput"), o, c); !done) return done;
  c.panels.insert(c.panels.begin(), relative_to(c.panels.front(), "base", "over ETL-Base"));
  return {};
}

namespace {

// Runs ETL-Base and NVRAM-DP where fences wait, with what `slower` adds to the medium of a
// workload, and ETL-Base without added latency if `bare`.
result<> measure_waiting(const sweep_options& o, chart& c, const std::string& name, bool bare,
                         const std::function<std::string(const std::string&)>& slower) {
  std::vector<entry> entries = {on_pcm("base", "ETL-Base", "base", ""),
                                on_pcm("both", "NVRAM-DP", "base", "")};
  for (entry& e : entries)
    e.own = [slower, media = e.name == "base" ? "pcm:strict:waits" : "pcm:rules:1.7:waits"](
                task& t) { t.media = media + slower(t.workload); };
  if (bare) entries.push_back(on_pcm("none", "ETL-Base, no added latency", "base", "adr"));
  if (auto done = run(by_workload(o, entries, name + ", throughput"), o, c); !done) return done;
  c.panels.push_back(relative_to(c.panels.back(), "base", name + ", over ETL-Base"));
  return {};
}

// How many times as slow a processor has the share of ETL-Base's time.
double slower_for(const panel& rates, std::size_t place, double share) {
  const auto none = rates.find("none")->points[place], base = rates.find("base")->points[place];
  if (!none || !base) return 1;
  const double own = 1 / none->median, written = 1 / base->median - own;
  return std::clamp(share / (1 - share) * written / own, 1.0, 1000.0);
}

}  // namespace

result<> measure_workloads(const sweep_options& o, chart& c) {
  if (auto done = run(by_workload(o, systems(o), "throughput"), o, c); !done) return done;
  c.panels.insert(c.panels.begin(), relative_to(c.panels.front(), "base", "over ETL-Base"));
  if (!c.complete) return {};
  const auto as_it_is = [](const std::string&) { return std::string(); };
  if (auto done = measure_waiting(o, c, "fences wait", true, as_it_is); !done) return done;
  const panel rates = *std::prev(c.panels.end(), 2);
  // Figure 2's log and data are 52.2 to 66.2 % of the time: what the processor has is the rest.
  for (const double percent : {34, 41, 48}) {
    if (!c.complete) return {};
    const std::string name = fmt::format("fences wait, processor {} %", percent);
    const auto slower = [&](const std::string& workload) {
      const auto place = std::ranges::find(workloads, workload) - workloads.begin();
      return fmt::format(":slower={:.3f}",
                         slower_for(rates, static_cast<std::size_t>(place), percent / 100));
    };
    if (auto done = measure_waiting(o, c, name, false, slower); !done) return done;
  }
  return {};
}

}  // namespace stele::bench::dp2
