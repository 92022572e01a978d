// Figures 10 and 11 of the log-structured evaluation: the bytes that fast cleaning reclaims, and
// the cost of cleaning when memory is scarce.
//
// Utilisation is the bytes of the structure's live entries, heads included, over the bytes of all
// chunks: the minimum for compaction over the available space. The live bytes are measured in a
// large pool after as many updates as the structure has keys; the pool of each place is sized
// accordingly.
#include <bench/figures/lsnvmm_parts.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench::lsnvmm {
namespace {

constexpr double megabyte = 1e6;
constexpr unsigned updates_a_step = 2,
                   steps = 8;  // figure 10: updates as multiples of the elements

spread constant(double v) {
  return {v, v, v};
}

// MB reclaimed by fast cleaning after each step.
result<std::vector<double>> reclaimed(const sweep_options& o, const char* workload,
                                      bool separate_logs) {
  task t = task_on(o, {workload, workload, workloads::key_choice::uniform}, 2 * o.large_keys);
  t.media = "adr";
  t.parameters.value_size = 1024;
  t.log_size_bytes = chunk_bytes;
  t.pool_size_bytes =
      pool_size_of(t) + o.large_keys * updates_a_step * steps * (t.parameters.value_size + 1024);
  t.log_structured.separate_logs = separate_logs;
  t.log_structured.clean_from = 2;  // no entries are moved
  pool_options options = stele_options(t, mechanism);
  options.engine.background = false;
  const auto p = filled_pool::make(t, options);
  if (!p) return std::unexpected(p.error());
  std::vector<double> megabytes;
  const std::uint64_t before = (*p)->counters().of_mechanism["fast_cleaned_chunks"];
  for (unsigned step = 0; step < steps && !o.cancelled(); ++step) {
    if (auto done = (*p)->apply(o.large_keys * updates_a_step); !done)
      return std::unexpected(std::move(done.error()));
    const std::uint64_t chunks = (*p)->counters().of_mechanism["fast_cleaned_chunks"] - before;
    megabytes.push_back(static_cast<double>(chunks * chunk_bytes) / megabyte);
  }
  return megabytes;
}

series series_of(const char* name, const char* label, const std::vector<double>& values,
                 std::size_t places) {
  series s{name, label, false, std::vector<std::optional<spread>>(places)};
  for (std::size_t i = 0; i < values.size(); ++i) s.points[i] = constant(values[i]);
  return s;
}

// MB per million updates since the place before.
std::vector<double> rate_of(const std::vector<double>& megabytes, double updates) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < megabytes.size(); ++i)
    rates.push_back((megabytes[i] - (i == 0 ? 0 : megabytes[i - 1])) / updates * 1e6);
  return rates;
}

measure of_events(std::string panel, std::string y, double (*per_second)(const row& r)) {
  return {std::move(panel), std::move(y),
          [per_second](const row& r, const task&) { return constant(per_second(r)); }};
}
double moved_per_second(const row& r) {
  return per_transaction(r, &event_counts::moved_bytes) * r.tx_per_s.median / megabyte;
}
double freed_per_second(const row& r) {
  return per_transaction(r, &event_counts::cleaned_chunks) * chunk_bytes * r.tx_per_s.median /
         megabyte;
}

entry with_cleaners(unsigned cleaners, std::size_t entries_bytes,
                    const std::vector<double>& shares) {
  entry e{fmt::format("{} cleaner{}", cleaners, cleaners == 1 ? "" : "s"), "", mechanism,
          chunk_bytes};
  e.label = e.name;
  e.own = [=](task& t) {
    t.log_structured.cleaners = cleaners;
    // The sweep's `set` stores the place in pool_size_bytes.
    t.pool_size_bytes =
        static_cast<std::size_t>(static_cast<double>(entries_bytes) / shares[t.pool_size_bytes]);
  };
  return e;
}

}  // namespace

result<> measure_fast_cleaning(const sweep_options& o, chart& into) {
  std::vector<std::string> xs;
  for (unsigned i = 1; i <= steps; ++i) xs.push_back(fmt::format("{}", i * updates_a_step));
  for (const char* workload : {"hash", "rbtree"}) {
    panel sum{workload, "updates over elements", "MB reclaimed by fast cleaning", xs, {}, false};
    panel rate{
        fmt::format("{}: rate", workload), sum.x, "MB reclaimed a million updates", xs, {}, false};
    for (const auto& [name, label, separate] : {std::tuple{"separate", "separate logs (Sep)", true},
                                                std::tuple{"one", "one log (Base)", false}}) {
      o.progress(fmt::format("{}, {}", workload, label));
      const auto megabytes = reclaimed(o, workload, separate);
      if (!megabytes) return std::unexpected(megabytes.error());
      into.complete = into.complete && megabytes->size() == steps;
      sum.lines.push_back(series_of(name, label, *megabytes, steps));
      const double updates = static_cast<double>(o.large_keys * updates_a_step);
      rate.lines.push_back(series_of(name, label, rate_of(*megabytes, updates), steps));
    }
    into.panels.push_back(sum);
    into.panels.push_back(rate);
  }
  into.notes.push_back(fmt::format(
      "{} elements at first; the log's cleaning in the commits; nothing is moved; medium adr",
      o.large_keys));
  return {};
}

result<> measure_wear(const sweep_options& o, chart& into) {
  constexpr std::uint64_t updates_of_key = 32;
  for (const char* workload : {"hash", "bptree"}) {
    task t = task_on(o, {workload, workload, workloads::key_choice::uniform}, o.large_keys);
    const auto size = pool_for_share(t, 0.2, o.large_keys);
    if (!size) return std::unexpected(size.error());
    t.media = "adr";
    t.log_size_bytes = chunk_bytes;
    t.pool_size_bytes = std::max(*size, std::size_t{16} * chunk_bytes);
    panel p{workload, "chunk", "writes since the pool was made", {"least", "median", "most"},
            {},       true};
    for (const auto& [name, label, levels] : {std::tuple{"levelled", "fewest writes first", true},
                                              std::tuple{"last", "last freed first", false}}) {
      if (o.cancelled()) break;
      o.progress(fmt::format("{}, {}", workload, label));
      t.log_structured.level_wear = levels;
      pool_options options = stele_options(t, mechanism);
      options.engine.background = false;
      const auto filled = filled_pool::make(t, options);
      if (!filled) return std::unexpected(filled.error());
      if (auto done = (*filled)->apply(o.large_keys * updates_of_key); !done) return done;
      const auto writes = (*filled)->chunk_writes();
      std::vector<double> spread_of_writes;
      for (const std::uint64_t w : {writes.front(), writes[writes.size() / 2], writes.back()})
        spread_of_writes.push_back(static_cast<double>(w));
      p.lines.push_back(series_of(name, label, spread_of_writes, p.xs.size()));
    }
    into.complete = into.complete && p.lines.size() == 2;
    into.panels.push_back(p);
  }
  into.notes.push_back(fmt::format("{} keys, {} updates; cleaning in the commits; medium adr",
                                   o.large_keys, o.large_keys * updates_of_key));
  return {};
}

result<> measure_utilisation_at(const sweep_options& o, std::size_t value_size,
                                std::span<const unsigned> percents, chart& into) {
  const std::size_t keys = std::max<std::size_t>(8192, o.keys * value_bytes / value_size);
  task t = task_on(o, {"bptree", "bptree", workloads::key_choice::uniform}, keys);
  t.parameters.value_size = value_size;
  o.progress(fmt::format("{} B: what the tree takes", value_size));
  const auto takes = pool_for_share(t, 1, keys);
  if (!takes) return std::unexpected(takes.error());
  std::vector<double> shares;
  std::vector<std::string> xs;
  for (const unsigned percent : percents) {
    shares.push_back(percent / 100.0);
    xs.push_back(fmt::format("{}", percent));
  }
  entry none = all_optimisations(o, "no cleaning", "no cleaning needed");
  const auto live_at_the_end = [takes = *takes, shares](const row& r, const task& at) {
    const double pool = static_cast<double>(takes) / shares[at.pool_size_bytes];
    return constant(100 * static_cast<double>(r.space_bytes.value_or(0) - r.log_bytes) / pool);
  };
  const std::string size = fmt::format("{} B", value_size);
  const sweep s{
      t,
      "utilisation, %",
      xs,
      [](task& at, std::size_t place) { at.pool_size_bytes = place; },
      {none, with_cleaners(1, *takes, shares), with_cleaners(2, *takes, shares)},
      {transactions_per_s(size + ": throughput"),
       of_events(size + ": freed", "MB of chunks that cleaning frees a second", freed_per_second),
       of_events(size + ": moved", "MB that cleaning moves a second", moved_per_second),
       {size + ": live",
        "% of that pool that is live at the end, after cleaning has joined small entries",
        live_at_the_end}},
      false,
      true};
  into.notes.push_back(fmt::format("{} B: {} keys, the tree takes {:.1f} MB of log", value_size,
                                   keys, static_cast<double>(*takes) / megabyte));
  return run(s, o, into);
}

result<> measure_utilisation(const sweep_options& o, chart& into) {
  static constexpr unsigned percents[] = {50, 60, 70, 80, 90, 95};
  for (const std::size_t value_size : {std::size_t{128}, std::size_t{1024}})
    if (auto done = measure_utilisation_at(o, value_size, percents, into); !done) return done;
  into.notes.emplace_back(
      "one working thread (the paper: four); utilisation is of live entries with their heads");
  return {};
}

}  // namespace stele::bench::lsnvmm
