// The targets of the mechanism log_structured, after the evaluation of Hu, Ren, Badam, Shu,
// Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017): throughput over redo and undo
// logging, the gain of each optimisation of the map, write traffic, fragmentation, cleaning,
// recovery, ordinary memory used, and the cost of a load. `stele bench lsnvmm`.
//
// Systems are compared within one interleaved run for each workload: the five stages of the map,
// the default with its word cache, redo and undo. A workload's ratio is the mean over Ins and Upd.
// Means over workloads give each workload the same weight.
#include <bench/figures/lsnvmm_parts.h>
#include <bench/targets_parts.h>
#include <fmt/format.h>
#include <stele/element.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace stele::bench {
namespace {

using lsnvmm::pattern;
using lsnvmm::patterns;

constexpr const char* five_workloads[] = {"sps", "hash", "rbtree", "bptree", "kv"};

sweep_options sweep_options_of(const target_options& o) {
  sweep_options s;
  s.dir = o.dir;
  s.runs = o.runs;
  s.seconds = o.seconds;
  s.phase_bytes = std::uint64_t{64} << 20;
  s.progress = o.progress;
  s.cancelled = o.cancelled;
  return s;
}

double mean(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

// The mean ratio of series a to series b in a panel over `patterns`, for one workload; b null: the
// mean of a itself.
double of_workload(const panel& p, std::string_view workload, const char* a, const char* b) {
  std::vector<double> values;
  const series *above = p.find(a), *below = b == nullptr ? nullptr : p.find(b);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (patterns[i].workload == workload)
      values.push_back(above->points[i]->median /
                       (below == nullptr ? 1 : below->points[i]->median));
  return mean(values);
}
double of_all(const panel& p, const char* a, const char* b) {
  std::vector<double> values;
  for (const char* workload : five_workloads) values.push_back(of_workload(p, workload, a, b));
  return mean(values);
}
std::string of_each(const panel& p, const char* a, const char* b) {
  std::string all;
  for (const char* workload : five_workloads)
    all += fmt::format("{}{} {:.2f}", all.empty() ? "" : ", ", workload,
                       of_workload(p, workload, a, b));
  return all;
}

result<chart> all_systems(const target_options& o, std::size_t keys) {
  const sweep_options with = sweep_options_of(o);
  std::vector<entry> entries = lsnvmm::stages(with);
  entries.push_back(lsnvmm::all_optimisations(with, "default", "default"));
  for (const auto& s : lsnvmm::logging_systems) entries.push_back(lsnvmm::in_place(with, s));
  std::vector<std::string> xs;
  for (const pattern& p : patterns) xs.emplace_back(p.name);
  const auto one = [](double v) { return spread{v, v, v}; };
  const sweep s{
      lsnvmm::task_on(with, patterns[0], keys),
      fmt::format("{} keys,", keys),
      xs,
      [](task& t, std::size_t place) { lsnvmm::set_pattern(t, patterns[place]); },
      entries,
      {transactions_per_s("throughput"),
       {"traffic", "", [one](const row& r, const task&) { return one(lsnvmm::traffic_of(r)); }},
       {"hits", "", [one](const row& r, const task&) { return one(lsnvmm::hit_percent_of(r)); }}}};
  chart c;
  if (auto done = run(s, with, c); !done) return std::unexpected(std::move(done.error()));
  if (!c.complete) return std::unexpected(error{errc::cancelled, "interrupted"});
  return c;
}

template <std::size_t keys>
result<> over_logging(const target_options& o, std::vector<performance_target>& targets) {
  const auto c = all_systems(o, keys);
  if (!c) return std::unexpected(c.error());
  const panel &rate = c->panels[0], &traffic = c->panels[1], &hits = c->panels[2];
  const auto add = [&](const std::string& what, const char* unit, double mark, double measured,
                       bool at_most, std::string detail) {
    targets.push_back(
        {fmt::format("{} keys: {}", keys, what), unit, mark, measured, at_most, std::move(detail)});
  };
  add("over redo", "x", 1.37, of_all(rate, "default", "redo"), false,
      of_each(rate, "default", "redo"));
  add("over undo", "x", 1.66, of_all(rate, "default", "undo"), false,
      of_each(rate, "default", "undo"));
  for (const char* workload : {"sps", "hash"})
    add(fmt::format("{} over redo", workload), "x", 1.8,
        of_workload(rate, workload, "default", "redo"), false, "one thread, 128 B, delayed:500:1");
  add("write traffic, of redo's", "%", 25, 100 * of_all(traffic, "default", "redo"), true,
      of_each(traffic, "default", "redo"));
  add("two layers gain", "x", 1, of_all(rate, "2L", "base"), false, of_each(rate, "2L", "base"));
  add("group update gains", "x", 1, of_all(rate, "2L-GU", "2L"), false,
      of_each(rate, "2L-GU", "2L"));
  add("the node cache gains", "x", 1, of_all(rate, "2L-GU-C", "2L-GU"), false,
      of_each(rate, "2L-GU-C", "2L-GU"));
  add("all optimisations over base", "x", 2.5, of_all(rate, "all", "base"), false,
      of_each(rate, "all", "base"));
  add("the word cache gains", "x", 1, of_all(rate, "default", "all"), false,
      of_each(rate, "default", "all"));
  add("node-cache hits", "%", 90, of_all(hits, "all", nullptr), false,
      of_each(hits, "all", nullptr));
  return {};
}

result<> readers_without_locks(const target_options& o, std::vector<performance_target>& targets) {
  const sweep_options with = sweep_options_of(o);
  auto last_two = lsnvmm::stages(with);
  last_two.erase(last_two.begin(), last_two.end() - 2);
  static constexpr pattern updates[] = {patterns[2], patterns[4], patterns[6]};
  const sweep s{lsnvmm::task_on(with, updates[0], with.keys),
                "4 threads,",
                {"hash", "rbtree", "bptree"},
                [](task& t, std::size_t place) {
                  lsnvmm::set_pattern(t, updates[place]);
                  t.threads = 4;
                },
                last_two,
                {transactions_per_s("throughput")}};
  chart c;
  if (auto done = run(s, with, c); !done) return done;
  if (!c.complete) return std::unexpected(error{errc::cancelled, "interrupted"});
  const panel ratio = relative_to(c.panels.front(), "2L-GU-C", "");
  std::vector<double> each;
  for (const auto& v : ratio.find("all")->points) each.push_back(v->median);
  targets.push_back({"4 threads: readers without locks gain", "x", 1, mean(each), false,
                     fmt::format("hash {:.2f}, rbtree {:.2f}, bptree {:.2f}; {} keys by Zipf",
                                 each[0], each[1], each[2], with.keys)});
  return {};
}

result<> fragmentation(const target_options& o, std::vector<performance_target>& targets) {
  const sweep_options with = sweep_options_of(o);
  std::vector<double> percents;
  for (const heap_workload& w : heap_workloads) {
    const auto held = lsnvmm::smallest_pool(w, with);
    if (!held) return std::unexpected(held.error());
    percents.push_back(held->percent());
  }
  targets.push_back({"fragmentation, mean of W1 to W3", "%", 5, mean(percents), true,
                     fmt::format("{:.1f}, {:.1f}, {:.1f}; the smallest pool, {} MiB a phase",
                                 percents[0], percents[1], percents[2], with.phase_bytes >> 20)});
  return {};
}

result<> cleaning(const target_options& o, std::vector<performance_target>& targets) {
  static constexpr unsigned percents[] = {90};
  for (const std::size_t value_size : {std::size_t{128}, std::size_t{1024}}) {
    chart c;
    if (auto done = lsnvmm::measure_utilisation_at(sweep_options_of(o), value_size, percents, c);
        !done)
      return done;
    const panel& p = c.panels.front();
    const auto none = p.find("no cleaning")->points[0], one = p.find("1 cleaner")->points[0],
               two = p.find("2 cleaners")->points[0];
    const auto cost = [&](const std::optional<spread>& v) {
      return none && v ? 100 * (1 - v->median / none->median) : 100;
    };
    targets.push_back({fmt::format("cleaning at 90 % utilisation, {} B", value_size), "%", 8,
                       cost(one), true,
                       none ? fmt::format("bptree, one cleaner; two cleaners {:.1f} %", cost(two))
                            : c.notes.back()});
  }
  return {};
}

result<> recovery(const target_options& o, std::vector<performance_target>& targets) {
  static constexpr unsigned threads[] = {2};
  const auto times = lsnvmm::recover_killed(sweep_options_of(o), lsnvmm::value_bytes, threads);
  if (!times) return std::unexpected(times.error());
  std::vector<double> rates;
  for (const lsnvmm::recovered& r : times->front())
    rates.push_back(static_cast<double>(r.log_bytes) / 1e9 / r.seconds);
  if (rates.empty()) return std::unexpected(error{errc::cancelled, "interrupted"});
  targets.push_back({"recovery of 1 GiB of log, 2 threads, 128 B", "GB/s", 0.5,
                     spread_of(rates).median, false, "opening as a whole after a kill"});
  return {};
}

result<> ordinary_memory(const target_options& o, std::vector<performance_target>& targets) {
  const auto f = lsnvmm::map_of_kv(sweep_options_of(o), lsnvmm::value_bytes);
  if (!f) return std::unexpected(f.error());
  const auto percent = [&](std::uint64_t of) {
    return 100 * static_cast<double>(f->map_bytes) / static_cast<double>(of);
  };
  targets.push_back({"ordinary memory of keys and values, 128 B", "%", 17,
                     percent(f->content_bytes), true,
                     fmt::format("kv filled by inserts; {:.1f} % of all that is live in the log",
                                 percent(f->live_bytes))});
  return {};
}

struct element {
  field<std::uint64_t> word;
  field<blob<56>> rest;
};
struct nothing {
  field<std::uint64_t> word;
};

// Nanoseconds per load, of objects in an order without locality, in one read transaction.
result<double> load_ns(pool<nothing>& p, const std::vector<element*>& elements) {
  constexpr unsigned rounds = 500;
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sum = 0;
  auto done = p.read([&](const nothing&) {
    for (unsigned round = 0; round < rounds; ++round)
      for (const element* e : elements) sum += e->word;
  });
  if (!done) return std::unexpected(done.error());
  asm volatile("" : : "r"(sum));
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  return ns / rounds / static_cast<double>(elements.size());
}

result<> loads(const target_options& o, std::vector<performance_target>& targets) {
  constexpr std::size_t count = 1024;
  o.progress("a load through the map");
  std::vector<double> medians;
  double hits = 0;
  for (const char* mechanism : {lsnvmm::mechanism, "redo"}) {
    const std::string path = fmt::format("{}/loads-{}.stele", o.dir, getpid());
    auto p = pool<nothing>::open(
        path, {.create_size = std::size_t{16} << 20,
               .engine = {.mechanism = mechanism,
                          .media = "adr",
                          .tuning = log_structured_options{.word_cache = false}}});
    std::filesystem::remove(path);
    if (!p) return std::unexpected(p.error());
    std::vector<element*> elements(count);
    for (std::size_t i = 0; i < count; ++i)
      if (auto made = p->update([&](nothing&) { elements[i * 389 % count] = make<element>(); });
          !made)
        return made;
    std::vector<double> ns;
    for (unsigned run = 0; run < o.runs; ++run) {
      const auto one = load_ns(*p, elements);
      if (!one) return std::unexpected(one.error());
      ns.push_back(*one);
    }
    medians.push_back(spread_of(ns).median);
    const pool_counters c = p->counters();
    if (c.of_mechanism["map_hits"] != 0)
      hits = 100.0 * static_cast<double>(c.of_mechanism["map_hits"]) /
             static_cast<double>(c.of_mechanism["map_hits"] + c.of_mechanism["map_misses"]);
  }
  targets.push_back({"a load through the map, cached", "ns", 15, medians[0], true,
                     fmt::format("{} objects of 64 B in scattered order, one read transaction, "
                                 "stm, {:.2f} % hits; redo {:.2f} ns",
                                 count, hits, medians[1])});
  return {};
}

}  // namespace

const std::vector<target_group>& lsnvmm_targets() {
  static const std::vector<target_group> parts = {loads,
                                                  ordinary_memory,
                                                  recovery,
                                                  fragmentation,
                                                  cleaning,
                                                  readers_without_locks,
                                                  over_logging<std::size_t{1} << 14>,
                                                  over_logging<std::size_t{1} << 20>};
  return parts;
}

}  // namespace stele::bench
