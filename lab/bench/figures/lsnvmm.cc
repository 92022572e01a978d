// The sweeps of each figure of the log-structured evaluation, and the table of figures.
#include <bench/figures/claims.h>
#include <bench/figures/lsnvmm.h>
#include <bench/figures/lsnvmm_parts.h>
#include <bench/figures/lsnvmm_stated.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench {
namespace lsnvmm {
namespace {

spread constant(double v) {
  return {v, v, v};
}

std::vector<std::string> pattern_axis() {
  std::vector<std::string> names;
  for (const pattern& p : patterns) names.emplace_back(p.name);
  return names;
}

// Throughput of the entries on each workload.
sweep on_patterns(const sweep_options& o, std::vector<entry> entries,
                  std::vector<measure> measures) {
  return {task_on(o, patterns[0], o.keys),
          "workload",
          pattern_axis(),
          [](task& t, std::size_t place) { set_pattern(t, patterns[place]); },
          std::move(entries),
          std::move(measures),
          true};
}

measure hit_ratio() {
  return {"hit ratio", "% of lookups that the thread's node cache answers",
          [](const row& r, const task&) { return constant(hit_percent_of(r)); }};
}

result<> optimisations(const sweep_options& o, chart& c) {
  auto entries = stages(o);
  entries.push_back(all_optimisations(o, "cached", "all, word cache"));
  if (auto done = run(on_patterns(o, entries, {transactions_per_s("throughput")}), o, c); !done)
    return done;
  c.panels.insert(c.panels.begin(), relative_to(c.panels.front(), "base", "normalised"));
  return {};
}

result<> hit_ratios(const sweep_options& o, chart& c) {
  auto with_cache = stages(o);
  std::erase_if(with_cache, [](const entry& e) { return e.name != "2L-GU-C" && e.name != "all"; });
  return run(on_patterns(o, with_cache, {hit_ratio()}), o, c);
}

result<> readers_without_locks(const sweep_options& o, chart& c) {
  static constexpr unsigned counts[] = {1, 2, 4};
  auto last_two = stages(o);
  last_two.erase(last_two.begin(), last_two.end() - 2);
  for (const pattern& p : patterns) {
    if (p.choice != workloads::key_choice::zipf || p.workload == std::string_view("kv")) continue;
    const sweep s{task_on(o, p, o.keys),
                  "threads",
                  {"1", "2", "4"},
                  [](task& t, std::size_t place) { t.threads = counts[place]; },
                  last_two,
                  {transactions_per_s(p.workload)}};
    if (auto done = run(s, o, c); !done) return done;
  }
  return {};
}

std::vector<entry> systems(const sweep_options& o) {
  entry plain = all_optimisations(o, "plain", "LS without word cache");
  plain.own = [own = plain.own](task& t) {
    own(t);
    t.log_structured.word_cache = false;
  };
  entry busy = all_optimisations(o, "busy", "log_structured, cleaning (LSC)");
  busy.own = [own = busy.own](task& t) {
    own(t);
    t.log_structured.clean_from = 0;
    t.log_structured.victim_live_share = 0.5;
  };
  std::vector<entry> all = {all_optimisations(o, "all", "log_structured (LS)"), plain, busy};
  for (const logging_system& s : logging_systems) all.push_back(in_place(o, s));
  return all;
}

result<> against_logging(const sweep_options& o, chart& c) {
  for (const auto& [threads, name] : {std::pair{1u, "one thread"}, std::pair{4u, "four threads"}}) {
    sweep s = on_patterns(o, systems(o), {transactions_per_s(name)});
    s.what.threads = threads;
    if (auto done = run(s, o, c); !done) return done;
    c.panels.push_back(relative_to(c.panels.back(), "redo", fmt::format("{}, normalised", name)));
  }
  return {};
}

result<> written(const sweep_options& o, chart& c) {
  auto without_cleaning = systems(o);
  std::erase_if(without_cleaning,
                [](const entry& e) { return e.name == "busy" || e.name == "plain"; });
  const std::vector<measure> measures = {
      {"write traffic", "bytes a transaction, 64 for each line flushed or streamed",
       [](const row& r, const task&) { return constant(traffic_of(r)); }},
      {"wear", "bytes stored a transaction",
       [](const row& r, const task&) { return constant(stored_of(r)); }}};
  c.notes.emplace_back(
      "wear: bytes of each store to the pool's memory, repeated and padding ones too, streamed "
      "lines in full; not whether "
      "a byte changed by it");
  return run(on_patterns(o, without_cleaning, measures), o, c);
}

struct figure_entry {
  const char *name, *title, *section, *setting;
  bool timed;  // on the medium
  result<> (*measure)(const sweep_options& o, chart& c);
};

constexpr figure_entry figures[] = {
    {"4", "Throughput with each optimisation of the map", "5.2", "each workload", true,
     optimisations},
    {"5", "Hit ratio of the node cache", "5.2", "each workload", false, hit_ratios},
    {"6", "Readers with and without locks", "5.2", "keys by Zipf", true, readers_without_locks},
    {"7", "Throughput beside redo and undo logging", "5.3", "each workload", true, against_logging},
    {"8", "Write traffic and wear", "5.3", "each workload", false, written},
    {"9", "Fragmentation", "5.3", "objects whose sizes change between two phases", false,
     measure_fragmentation},
    {"10", "What fast cleaning reclaims, with separate logs and with one", "5.4.1",
     "1024 B values, uniform keys", false, measure_fast_cleaning},
    {"11", "Throughput and cleaning by utilisation", "5.4.1", "bptree, uniform keys", true,
     measure_utilisation},
    {"wear", "Writes of a chunk, with and without wear-levelling", "1",
     "hash and bptree, uniform keys, a fifth of the pool live", false, measure_wear},
    {"12", "Recovery time by threads", "5.4.2", "hash", true, measure_recovery},
    {"13", "Memory for the map of home", "5.4.3", "kv, filled by inserts", false, measure_dram},
};

std::string note_of(const sweep_options& o) {
  return fmt::format(
      "medians of {} run{} (of {} s, in turn, where throughput is measured); {} keys, of which "
      "half are there (the paper: 10 "
      "million elements); seed {}",
      o.runs, o.runs == 1 ? "" : "s", o.seconds, o.keys, o.seed);
}

}  // namespace
}  // namespace lsnvmm

std::vector<std::string> lsnvmm_figures() {
  std::vector<std::string> names;
  for (const auto& f : lsnvmm::figures) names.emplace_back(f.name);
  return names;
}
std::span<const charge_rule> lsnvmm_charges() noexcept {
  static constexpr charge_rule rules[] = {
      {"together", "", "the lines of a fence pay max(latency, bytes / bandwidth)"},
      {"standalone", ":standalone",
       "each run of adjacent lines of a fence pays max(latency, bytes / bandwidth)"}};
  return rules;
}
std::vector<std::string> lsnvmm_timed_figures() {
  std::vector<std::string> names;
  for (const auto& f : lsnvmm::figures)
    if (f.timed) names.emplace_back(f.name);
  return names;
}

result<chart> measure_lsnvmm(std::string_view figure, const sweep_options& o) {
  const auto* f = std::ranges::find(lsnvmm::figures, figure, &lsnvmm::figure_entry::name);
  if (f == std::ranges::end(lsnvmm::figures))
    return std::unexpected(error{errc::invalid_argument,
                                 fmt::format("there is no figure '{}' to redraw; choose one of {}",
                                             figure, fmt::join(lsnvmm_figures(), ", "))});
  chart c;
  c.name = fmt::format("lsnvmm-{}", f->name);
  if (auto set = set_charge(lsnvmm_charges(), o, f->timed, c); !set)
    return std::unexpected(std::move(set.error()));
  c.title = fmt::format("Figure {}: {}", f->name, f->title);
  c.source = fmt::format(
      "Hu, Ren, Badam, Shu, Moscibroda, \"Log-Structured Non-Volatile Main Memory\" (2017), "
      "section {}",
      f->section);
  c.setting = fmt::format(
      "{}; where neither this nor the axis nor a note says otherwise: {} B values, 1 operation a "
      "transaction (it deletes its "
      "key or inserts it; sps swaps two elements), 1 thread, stm, {}",
      f->setting, lsnvmm::value_bytes, lsnvmm::medium_of(o));
  c.notes = {lsnvmm::note_of(o)};
  if (auto done = f->measure(o, c); !done) return std::unexpected(std::move(done.error()));
  if (!c.complete) c.notes.emplace_back("interrupted: the places measured until then");
  c.claims = claims_of(c, figure, stated::lsnvmm_statements);
  c.verdicts = verdicts_of(c, "lsnvmm", figure, stated::lsnvmm_statements,
                           under_charge(lsnvmm_charges(), o));
  return c;
}

}  // namespace stele::bench
