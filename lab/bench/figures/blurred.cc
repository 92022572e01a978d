// The sweeps of each figure, and the table of figures.
#include <bench/figures/blurred.h>
#include <bench/figures/blurred_parts.h>
#include <bench/figures/claims.h>
#include <bench/figures/stated.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

const std::vector<std::string> all_systems = {"none", "base", "redo",   "redo-published",
                                              "xil",  "vcbp", "blurred"};

std::vector<std::string> workload_axis() {
  return {stated::workloads.begin(), stated::workloads.end()};
}

template <class Values>
std::vector<std::string> axis_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& v : values) names.push_back(fmt::format("{}", v));
  return names;
}

std::vector<entry> entries_of(const std::vector<std::string>& mechanisms) {
  std::vector<entry> entries;
  for (const std::string& m : mechanisms) entries.push_back(entry_of(m));
  return entries;
}

// The same where the whole cache is written back at once, at the bandwidth of a channel of DDR3
// memory, in GB/s, as the paper's server has.
entry on_whole_cache(const std::string& mechanism) {
  entry e = entry_of(mechanism);
  e.name += " whole";
  e.label = fmt::format("{}, whole cache", mechanism);
  e.own = [](task& t) { t.media += ":cache=8"; };
  return e;
}
std::vector<entry> with_whole_cache(std::vector<entry> entries) {
  std::vector<entry> whole;
  for (const entry& e : entries)
    if (e.name == "vcbp" || e.name == "blurred" || e.name == "adaptive")
      whole.push_back(on_whole_cache(e.name));
  entries.insert(entries.end(), whole.begin(), whole.end());
  return entries;
}
// Execution in log with runs, which the paper does not have.
entry entry_with_runs(const std::string& mechanism) {
  entry e{mechanism + "-runs", mechanism + ", runs", mechanism};
  e.own = [](task& t) { t.blurred.runs = true; };
  return e;
}

// The settings of section 5.1: 8-byte values, one operation per transaction, one thread, 150 ns.
task task_on(const sweep_options& o, const std::string& workload, std::size_t keys) {
  task t;
  t.workload = workload;
  t.media = medium_of(o, 150);
  t.parameters.keys = keys;
  return t;
}

std::function<void(task&, std::size_t)> set_latency(const sweep_options& o) {
  return [o](task& t, std::size_t place) { t.media = medium_of(o, stated::latencies_ns[place]); };
}

result<> single_thread(const sweep_options& o, chart& c) {
  const auto set = [](task& t, std::size_t place) { t.workload = stated::workloads[place]; };
  const sweep s{task_on(o, "", o.keys),
                "workload",
                workload_axis(),
                set,
                with_whole_cache(entries_of(all_systems)),
                {transactions_per_s("throughput")},
                true};
  if (auto done = run(s, o, c); !done) return done;
  c.panels.insert(c.panels.begin(), relative_to(c.panels.front(), "base", "normalised"));
  return {};
}

result<> threads(const sweep_options& o, chart& c) {
  static constexpr unsigned counts[] = {1, 2, 4, 8};
  const auto set = [](task& t, std::size_t place) { t.threads = counts[place]; };
  for (const std::string workload : {"hash", "rbtree"}) {
    const std::vector<measure> measures = {transactions_per_s(workload),
                                           aborted_percent(workload + " aborts")};
    const sweep s{task_on(o, workload, o.keys),
                  "threads",
                  axis_of(counts),
                  set,
                  with_whole_cache(entries_of(all_systems)),
                  measures};
    if (auto done = run(s, o, c); !done) return done;
  }
  return {};
}

result<> value_sizes(const sweep_options& o, chart& c) {
  static constexpr std::size_t sizes[] = {8, 64, 256, 1024, 4096};
  const auto set = [](task& t, std::size_t place) { t.parameters.value_size = sizes[place]; };
  auto systems = all_systems;
  systems.emplace_back("base-published");
  auto entries = with_whole_cache(entries_of(systems));
  for (const char* mechanism : {"xil", "blurred"}) entries.push_back(entry_with_runs(mechanism));
  const sweep s{task_on(o, "hash", o.large_keys),
                "value size, bytes",
                axis_of(sizes),
                set,
                entries,
                {transactions_per_s("throughput"), value_bytes_per_s("bytes")}};
  return run(s, o, c);
}

result<> transaction_sizes(const sweep_options& o, chart& c) {
  static constexpr std::size_t sizes[] = {1, 2, 4, 8, 16, 32};
  const auto set = [](task& t, std::size_t place) { t.ops_per_tx = sizes[place]; };
  const sweep s{task_on(o, "hash", o.keys),
                "operations a transaction",
                axis_of(sizes),
                set,
                with_whole_cache(entries_of(all_systems)),
                {operations_per_s("throughput")}};
  return run(s, o, c);
}

// Compares log sizes side by side, for each workload.
result<> log_sizes(const sweep_options& o, chart& c) {
  const auto set = [](task& t, std::size_t place) { t.workload = stated::workloads[place]; };
  for (const entry& one : {entry_of("blurred"), on_whole_cache("blurred")}) {
    std::vector<entry> entries;
    for (const double mb : {0.1, 0.25, 0.5, 1.0, 2.0}) {
      entry e = one;
      e.name = e.label = fmt::format("{:g}", mb);
      e.log_size_bytes = static_cast<std::size_t>(mb * mib);
      entries.push_back(e);
    }
    const bool whole = one.name != one.mechanism;
    const sweep s{task_on(o, "", o.keys),
                  "workload",
                  workload_axis(),
                  set,
                  entries,
                  {transactions_per_s(whole ? "throughput, whole cache" : "throughput")}};
    if (auto done = run(s, o, c); !done) return done;
    c.panels.back() = transposed(c.panels.back(), "log size, MiB");
  }
  return {};
}

result<> idle_time(const sweep_options& o, chart& c) {
  static constexpr unsigned percents[] = {90, 80, 70, 60, 50, 40, 30, 20, 10, 0};
  const auto set = [](task& t, std::size_t place) {
    t.parameters.value_size = 1024;
    t.idle_share = percents[place] / 100.0;
  };
  auto entries = entries_of({"none", "base", "redo", "redo-published", "redo-async", "blurred"});
  entries[2].label = "redo (MNE-SYNC)";
  entries = with_whole_cache(std::move(entries));
  const sweep s{task_on(o, "hash", o.large_keys),  "idle time, %", axis_of(percents), set, entries,
                {transactions_per_s("throughput")}};
  return run(s, o, c);
}

result<> latencies(const sweep_options& o, chart& c) {
  const sweep s{
      task_on(o, "hash", o.keys),
      "latency, ns",
      axis_of(stated::latencies_ns),
      set_latency(o),
      with_whole_cache(entries_of({"base", "redo", "redo-published", "xil", "vcbp", "blurred"})),
      {transactions_per_s("throughput")}};
  if (auto done = run(s, o, c); !done) return done;
  c.panels.push_back(relative_to(c.panels.front(), "base", "normalised"));
  return {};
}

result<> adaptive(const sweep_options& o, chart& c) {
  for (const char* workload : stated::workloads) {
    task what = task_on(o, workload, o.keys);
    what.adaptive.warm_up = o.short_warm_up;
    const sweep s{what,
                  "latency, ns",
                  axis_of(stated::latencies_ns),
                  set_latency(o),
                  with_whole_cache(entries_of({"vcbp", "blurred", "adaptive"})),
                  {transactions_per_s(workload)}};
    if (auto done = run(s, o, c); !done) return done;
  }
  return {};
}

struct figure_entry {
  const char *name, *title, *section, *setting;
  result<> (*measure)(const sweep_options& o, chart& c);
};

constexpr figure_entry figures[] = {
    {"9", "Transaction throughput, one thread", "5.2.1", "each workload", single_thread},
    {"10", "Transaction throughput and aborts, several threads", "5.2.2", "hash and rbtree",
     threads},
    {"11", "Sensitivity to the value size", "5.3.1", "hash", value_sizes},
    {"12", "Sensitivity to the transaction size", "5.3.2", "hash", transaction_sizes},
    {"13", "Throughput by log size", "5.3.3",
     "blurred, its log sizes side by side on each workload", log_sizes},
    {"14", "Recovery time by log size", "5.3.3", "blurred, each workload; the first table on hash",
     measure_recovery},
    {"15", "Sensitivity to idle time", "5.3.4", "hash, 1024 B values", idle_time},
    {"16", "Sensitivity to the memory latency", "5.4.1", "hash", latencies},
    {"17", "The adaptive mechanism", "5.4.2", "each workload", adaptive},
    {"II", "Warm-up time of the adaptive mechanism", "5.4.2", "adaptive, each workload",
     measure_warm_up},
};

std::string setting_of(const figure_entry& f, const sweep_options& o) {
  return fmt::format(
      "{}; where neither this nor the axis says otherwise: 8 B values, 1 operation a transaction, "
      "1 MiB of log, 1 thread, "
      "stm, {}",
      f.setting, medium_of(o, 150));
}

std::string note_of(const sweep_options& o) {
  return fmt::format(
      "medians of {} run{} (of {} s, in turn, where throughput is measured); {} keys, {} where "
      "values are large; seed {}",
      o.runs, o.runs == 1 ? "" : "s", o.seconds, o.keys, o.large_keys, o.seed);
}

}  // namespace

entry entry_of(const std::string& mechanism) {
  const auto named = std::ranges::find(stated::systems, mechanism, &stated::system_name::mechanism);
  return {mechanism, fmt::format("{} ({})", mechanism, named->text), mechanism};
}

std::span<const charge_rule> blurred_charges() noexcept {
  static constexpr charge_rule rules[] = {
      {"each", "", "each line flushed or streamed pays the latency"},
      {"once", ":stream=once",
       "each line flushed pays the latency; the lines streamed before a fence pay one together"}};
  return rules;
}

std::string medium_of(const sweep_options& o, unsigned latency_ns) {
  return fmt::format("delayed:{}{}", latency_ns, find_charge(blurred_charges(), o.charge)->media);
}

std::vector<std::string> blurred_figures() {
  std::vector<std::string> names;
  for (const figure_entry& f : figures) names.emplace_back(f.name);
  return names;
}

result<chart> measure_blurred(std::string_view figure, const sweep_options& o) {
  const auto* f = std::ranges::find(figures, figure, &figure_entry::name);
  if (f == std::ranges::end(figures))
    return std::unexpected(error{errc::invalid_argument,
                                 fmt::format("there is no figure '{}' to redraw; choose one of {}",
                                             figure, fmt::join(blurred_figures(), ", "))});
  const bool table = figure == "II";
  chart c;
  c.name = fmt::format("blurred-{}", f->name);
  if (auto set = set_charge(blurred_charges(), o, true, c); !set)
    return std::unexpected(std::move(set.error()));
  c.title = fmt::format("{} {}: {}", table ? "Table" : "Figure", f->name, f->title);
  c.source = fmt::format(
      "Lu, Shu and Sun, \"Blurred Persistence: Efficient Transactions in Persistent Memory\" "
      "(2016), section {}",
      f->section);
  c.setting = setting_of(*f, o);
  c.notes = {note_of(o)};
  if (auto done = f->measure(o, c); !done) return std::unexpected(std::move(done.error()));
  if (!c.complete) c.notes.emplace_back("interrupted: the places measured until then");
  c.claims = claims_of(c, figure);
  c.verdicts =
      verdicts_of(c, "blurred", figure, stated::statements, under_charge(blurred_charges(), o));
  return c;
}

}  // namespace stele::bench
