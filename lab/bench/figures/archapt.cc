// The table of figures of the architecture-aware evaluation, and the figures that are sweeps of
// throughput or latency.
#include <bench/figures/archapt.h>
#include <bench/figures/archapt_dirtiness.h>
#include <bench/figures/archapt_parts.h>
#include <bench/figures/archapt_stated.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace stele::bench {
namespace archapt {
namespace {

constexpr const char *percentile_99th = "99th percentile",
                     *answered_99th = "99th percentile, until answered";

// Of figures 7 and 8; the first four have requirements.
constexpr pair over_bases[] = {{system::undo_archapt, system::undo},
                               {system::undo_later, system::undo},
                               {system::redo_archapt, system::redo},
                               {system::redo_archapt, system::async},
                               {system::undo_pays, system::undo},
                               {system::redo_pays, system::redo},
                               {system::redo_pays, system::async},
                               {system::undo_always, system::undo},
                               {system::redo_always, system::redo},
                               {system::undo_archapt, system::undo_published},
                               {system::undo_later, system::undo_published},
                               {system::redo_archapt, system::redo_published}};
constexpr std::size_t required = 4;

sweep on_mixes(const sweep_options& o, std::span<const mix> all, unsigned threads,
               std::vector<entry> entries, std::vector<measure> measures) {
  const std::vector<mix> kept(all.begin(), all.end());
  return {task{},
          "workload",
          names_of(all),
          [o, kept, threads](task& t, std::size_t place) { t = task_on(o, kept[place], threads); },
          std::move(entries),
          std::move(measures),
          true};
}

constexpr const char* none_note =
    "none: the home is stored to in place, without log, flush or fence: no durability";

// The module of Redis takes a mechanism, and none of its options.
std::vector<entry> all_systems(const sweep_options& o) {
  if (is_on_redis(o))
    return entries_of({system::none, system::undo, system::undo_archapt, system::redo,
                       system::async, system::redo_archapt});
  return entries_of({system::none, system::undo, system::undo_published, system::undo_archapt,
                     system::undo_later, system::undo_pays, system::undo_always, system::redo,
                     system::redo_published, system::async, system::redo_archapt, system::redo_pays,
                     system::redo_always});
}

// Of figures 2, 7 and 8. On a host a transaction takes longer.
double seconds_of(const sweep_options& o) {
  return o.host.empty() ? o.archapt_seconds : o.seconds;
}
sweep_options timed(sweep_options o) {
  o.seconds = seconds_of(o);
  return o;
}

void add_notes_on_systems(const sweep_options& o, chart& c) {
  if (is_on_redis(o)) return c.notes.emplace_back(none_note), void();
  for (const char* note : {later_note, skipping_note, none_note}) c.notes.emplace_back(note);
}

std::string threads_name(unsigned threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// A share is left out if what it divides is not three times what the runs' times differ by.
constexpr double least_over_noise = 3;

std::string not_persistent(std::string_view mechanism) {
  return fmt::format("{}, not persistent", mechanism);
}

struct duration {
  double ns, noise;
};
// The time of a transaction, and half of what its runs differ by.
duration time_of(const spread& rate) {
  return {1e9 / rate.median, (1e9 / rate.min - 1e9 / rate.max) / 2};
}

// Divides the time beyond that of `none`: the part that remains on memory without flushes and
// fences is copying and records (logging), the rest is persistence.
panel shares_of(const panel& rates, const char* mechanism) {
  panel p{mechanism, rates.x, "% of the time beyond none's", rates.xs, {}, true};
  std::vector<std::optional<double>> logging(rates.xs.size()), persistence(rates.xs.size()),
      ns(rates.xs.size()), noise(rates.xs.size());
  const series *none = rates.find(system::none),
               *volatile_one = rates.find(not_persistent(mechanism)),
               *whole = rates.find(mechanism);
  for (std::size_t i = 0; i < rates.xs.size(); ++i) {
    if (!none->points[i] || !volatile_one->points[i] || !whole->points[i]) continue;
    const duration bare = time_of(*none->points[i]), copied = time_of(*volatile_one->points[i]),
                   all = time_of(*whole->points[i]);
    ns[i] = all.ns - bare.ns;
    noise[i] = bare.noise + copied.noise + all.noise;
    if (*ns[i] < least_over_noise * *noise[i]) continue;
    // What is below zero here is less than the noise.
    logging[i] = 100 * std::clamp((copied.ns - bare.ns) / *ns[i], 0.0, 1.0);
    persistence[i] = 100 - *logging[i];
  }
  p.lines = {
      values_of("logging", std::move(logging)), values_of("persistence", std::move(persistence)),
      values_of("ns a transaction", std::move(ns)), values_of("noise, ns", std::move(noise))};
  return p;
}

}  // namespace

result<> measure_overhead(const sweep_options& o, chart& c) {
  const auto mechanisms = {system::undo, system::redo, system::async, system::undo_published,
                           system::redo_published};
  std::vector<entry> entries = entries_of({system::none});
  for (const char* mechanism : mechanisms) {
    entry e = entry_of(mechanism);
    entries.push_back(e);
    e.name = e.label = not_persistent(mechanism);
    e.own = [own = e.own](task& t) {
      own(t);
      t.media = "process";
    };
    entries.push_back(std::move(e));
  }
  const auto some = mixes_that_write();
  const sweep_options runs = timed(o);
  if (auto done =
          run(on_mixes(runs, some, 1, entries, {transactions_per_s("throughput")}), runs, c);
      !done)
    return done;
  const panel rates = c.panels.back();
  c.panels.clear();
  for (const char* mechanism : mechanisms) c.panels.push_back(shares_of(rates, mechanism));
  c.panels.push_back(rates);
  c.notes.emplace_back(none_note);
  c.notes.push_back(fmt::format(
      "logging: the time beyond none's on the medium process, where nothing is flushed, a fence "
      "orders nothing and the log is stored like anything else; "
      "persistence: what the medium of the setting adds to that. One thread (the text: eight "
      "clients). Noise: half of what the times of the runs differ by, of the three systems that a "
      "share is of; no shares where the overhead is below {:.0f} times the noise",
      least_over_noise));
  return {};
}

result<> measure_throughput(const sweep_options& o, chart& c) {
  const sweep_options runs = timed(o);
  std::vector<panel> rates, ratios;
  for (const unsigned threads : {1u, 2u, 4u}) {
    if (!c.complete || threads > o.archapt_threads) break;
    if (auto done = run(on_mixes(runs, mixes, threads, all_systems(o),
                                 {transactions_per_s(threads_name(threads))}),
                        runs, c);
        !done)
      return done;
    rates.push_back(std::move(c.panels.back()));
    c.panels.clear();
    ratios.push_back(ratios_of(rates.back(), over_bases,
                               fmt::format("{}, over the base", threads_name(threads))));
  }
  for (const panel& r : ratios)
    for (const pair& of : std::span(over_bases).first(required))
      if (is_measured(r, of)) c.notes.push_back(verdict_of(r, {of, 1.15, 0.97}));
  c.panels = std::move(rates);
  c.panels.insert(c.panels.end(), ratios.begin(), ratios.end());
  add_notes_on_systems(o, c);
  return {};
}

result<> measure_tail(const sweep_options& o, chart& c) {
  const auto percentile = [](std::string panel, double row::* of) {
    return measure{std::move(panel), "microseconds",
                   [of](const row& r, const task&) { return known(r.*of / 1e3); }};
  };
  const sweep_options runs = timed(o);
  std::vector<measure> measures = {percentile(percentile_99th, &row::p99_ns),
                                   percentile("median", &row::p50_ns)};
  if (!is_on_redis(o)) {
    measures.push_back(percentile(answered_99th, &row::answered_p99_ns));
    measures.push_back(percentile("median, until answered", &row::answered_p50_ns));
  }
  auto entries = all_systems(o);
  std::erase_if(entries, [](const entry& e) { return e.name.ends_with("always"); });
  for (entry& e : entries)
    e.own = [own = e.own](task& t) {
      own(t);
      t.until_answered = t.host.empty() && t.commits == durability::ordered;
    };
  if (auto done = run(on_mixes(runs, mixes, 2, std::move(entries), std::move(measures)), runs, c);
      !done)
    return done;
  std::vector<panel> ratios;
  for (const panel& p : c.panels)
    if (p.name.starts_with(percentile_99th))
      ratios.push_back(ratios_of(p, over_bases, p.name + ", over the base"));
  for (const panel& r : ratios)
    for (const pair& of : std::span(over_bases).first(required))
      if (is_measured(r, of))
        c.notes.push_back(verdict_of(r, {of, std::nullopt, std::nullopt, 1.0}));
  c.panels.insert(c.panels.end(), ratios.begin(), ratios.end());
  c.notes.emplace_back(
      "two threads, as many as there are cores (the text: eight clients on 24 cores); the "
      "latency of one transaction in 16, or of short ones in 64, is taken, over all runs");
  add_notes_on_systems(o, c);
  if (is_on_redis(o)) return {};
  c.notes.emplace_back(
      "until answered: until the physical commit, when the client is told (pool::when_durable); a "
      "read is answered when it returns. Systems that are durable when they return answer then. "
      "Those named later commit physically when a log is half full: their threads never wait, and "
      "their clients wait for that");
  return {};
}

namespace {

enum class hosts : std::uint8_t { none, redis, all };

struct figure_entry {
  const char *name, *title, *section, *setting;
  bool in_pools;  // whether the mixes run in pools of the setting
  hosts on;       // the hosts that can run it
  result<> (*measure)(const sweep_options& o, chart& c);
};

constexpr figure_entry figures[] = {
    {"2", "What of the overhead of undo and redo logging goes into logging and into persistence",
     "II-A", "mixes that write", true, hosts::all, measure_overhead},
    {"3", "Distribution of the reuse of objects", "II-B", "each mix", false, hosts::redis,
     measure_reuse},
    {"6", "Flushing objects beside creating and updating their checksums", "V-B",
     "objects side by side in the home of a pool", false, hosts::none, measure_checksums},
    {"7", "Throughput by threads", "V-B", "each mix", true, hosts::all, measure_throughput},
    {"8", "99th-percentile latency", "V-B", "each mix", true, hosts::all, measure_tail},
    {"9", "Lines flushed", "V-B", "mixes that write", true, hosts::redis, measure_flushes},
    {"10", "Dirtiness of the lines written back, with and without coalescing", "V-B", "each mix",
     false, hosts::all, measure_dirtiness},
    {"I", "Dirtiness of the lines written back", "II-B", "mixes that write", false, hosts::none,
     measure_dirtiness_table},
    {"IV", "Crashes behind caches", "V-B", "mixes that write", false, hosts::redis,
     measure_crashes},
};

bool is_run_by(const figure_entry& f, std::string_view host) {
  return f.on == hosts::all || (f.on == hosts::redis && host == "redis");
}

// What keeps transactions apart.
std::string isolation_of(const sweep_options& o) {
  return o.host.empty() ? "stm" : fmt::format("transactions of the host {}", o.host);
}

// What runs the mixes.
std::string place_of(const figure_entry& f, const sweep_options& o) {
  if (o.host.empty())
    return "the mixes run in the process that holds the pool; the text's run against Redis and "
           "SQLite, which are not in it";
  if (is_on_redis(o) && f.measure == measure_crashes)
    return "in place of the mixes: what the module does to the keys of Redis in its pool, without "
           "a "
           "server, so that it can be judged (the workload redis of stele crash)";
  if (is_on_redis(o))
    return "the mixes are commands and scripts of clients of Redis, each a thread that waits for "
           "each answer; strings and hashes are in the pool (adr), by the module with its own "
           "settings of logs and queue where time is measured; orders of tpcc are added and none "
           "replaced; the text's run against Redis and SQLite";
  return "the mixes are SQL transactions of SQLite, whose database is in the pool; orders and "
         "links "
         "of tpcc and linkbench are added and none replaced; the text's run against Redis and "
         "SQLite";
}

std::vector<std::string> notes_of(const figure_entry& f, const sweep_options& o) {
  const std::string where = place_of(f, o);
  if (!f.in_pools) {
    if (o.host.empty()) return {};
    return {fmt::format("seed {}", o.seed), where};
  }
  return {fmt::format("medians of {} run{} (of {} s, in turn, where throughput or latency is "
                      "measured); seed {}",
                      o.runs, o.runs == 1 ? "" : "s", seconds_of(o), o.seed),
          is_on_redis(o) && f.measure != measure_flushes ? fmt::format("{} keys", o.archapt_keys)
                                                         : sizes_of(task_on(o, mixes.front(), 1)),
          where};
}

std::vector<stated::statement> statements_with(const std::string& host) {
  const auto some = dirtiness_statements(host);
  std::vector<stated::statement> all(some.begin(), some.end());
  all.insert(all.end(), std::begin(stated::archapt_statements),
             std::end(stated::archapt_statements));
  return all;
}

}  // namespace
}  // namespace archapt

std::vector<std::string> archapt_figures() {
  std::vector<std::string> names;
  for (const auto& f : archapt::figures) names.emplace_back(f.name);
  return names;
}

std::vector<std::string> archapt_hosted_figures(std::string_view host) {
  std::vector<std::string> names;
  for (const auto& f : archapt::figures)
    if (archapt::is_run_by(f, host)) names.emplace_back(f.name);
  return names;
}

result<chart> measure_archapt(std::string_view figure, const sweep_options& o) {
  const auto* f = std::ranges::find(archapt::figures, figure, &archapt::figure_entry::name);
  if (f == std::ranges::end(archapt::figures))
    return std::unexpected(error{errc::invalid_argument,
                                 fmt::format("there is no figure '{}' to redraw; choose one of {}",
                                             figure, fmt::join(archapt_figures(), ", "))});
  if (!o.host.empty() && !archapt::is_run_by(*f, o.host))
    return std::unexpected(
        error{errc::invalid_argument,
              fmt::format("figure {} is not measured with a host; choose one of {}", figure,
                          fmt::join(archapt_hosted_figures(o.host), ", "))});
  chart c;
  c.name = fmt::format("archapt-{}{}{}", f->name, o.host.empty() ? "" : "-", o.host);
  const bool is_table = f->name[0] == 'I';
  c.title = fmt::format("{} {}: {}", is_table ? "Table" : "Figure", f->name, f->title);
  c.source = fmt::format(
      "Wu, Ren and Li, \"Architecture-Aware, High Performance Transaction for Persistent Memory\" "
      "(2019), section {}",
      f->section);
  c.setting = fmt::format(
      "{}; where neither this nor the axis nor a note says otherwise: records of 1024 B, texts of "
      "tpcc of 512 B, one operation a transaction, keys by Zipf, {}, {}",
      f->setting, archapt::isolation_of(o), archapt::medium_of(o));
  c.notes = archapt::notes_of(*f, o);
  const bool seeds = o.host.empty() && !f->in_pools;
  if (auto done = seeds ? over_seeds(o, c, f->measure) : f->measure(o, c); !done)
    return std::unexpected(std::move(done.error()));
  if (!c.complete) c.notes.emplace_back("interrupted: the places measured until then");
  const auto statements = archapt::statements_with(o.host);
  c.claims = claims_of(c, figure, statements);
  if (!o.host.empty())  // has no system of theirs
    std::erase_if(c.claims, [](const claim& k) { return k.measured.empty(); });
  c.verdicts =
      verdicts_of(c, "archapt", figure, statements, o.host.empty() ? "" : "the host " + o.host);
  return c;
}

}  // namespace stele::bench
