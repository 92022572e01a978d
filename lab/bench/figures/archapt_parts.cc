// Tasks, systems, ratios and requirements.
#include <bench/figures/archapt_parts.h>
#include <fmt/format.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <numeric>

namespace stele::bench::archapt {
namespace {

struct named {
  const char *name, *mechanism;
  durability commits = durability::durable;
  skipping skip = skipping::never;
  bool coalesce = false;
};
constexpr named systems[] = {
    {system::none, "none"},
    {system::undo, "undo"},
    {system::redo, "redo"},
    {system::async, "redo-async"},
    {system::undo_published, "undo-published"},
    {system::redo_published, "redo-published"},
    {system::undo_archapt, "archapt-undo"},
    {system::redo_archapt, "archapt-redo"},
    {system::undo_later, "archapt-undo", durability::ordered},
    {system::undo_pays, "archapt-undo", durability::ordered, skipping::when_it_pays},
    {system::undo_always, "archapt-undo", durability::ordered, skipping::always},
    {system::undo_coalescing, "undo", durability::durable, skipping::never, true},
    {system::later_coalescing, "archapt-undo", durability::ordered, skipping::never, true},
    {system::redo_coalescing, "archapt-redo", durability::durable, skipping::never, true},
    {system::redo_pays, "archapt-redo", durability::durable, skipping::when_it_pays},
    {system::redo_always, "archapt-redo", durability::durable, skipping::always}};

constexpr std::size_t mib = std::size_t{1} << 20, least_log = 65536;

// The log size of each thread; all logs together are as large as the data.
std::size_t log_size_of(const task& t) {
  return std::max<std::size_t>(live_bytes_of(t) / t.threads, least_log);
}

}  // namespace

bool is_on_redis(const sweep_options& o) {
  return o.host == "redis";
}
const char* medium_of(const sweep_options& o) {
  return is_on_redis(o) ? "adr" : "delayed:150";
}

std::vector<mix> mixes_that_write() {
  std::vector<mix> some;
  std::ranges::copy_if(mixes, std::back_inserter(some), &mix::writes);
  return some;
}

std::vector<std::string> names_of(std::span<const mix> all) {
  std::vector<std::string> names;
  for (const mix& m : all) names.emplace_back(m.name);
  return names;
}

task task_on(const sweep_options& o, const mix& m, unsigned threads) {
  task t;
  t.workload = m.name;
  t.host = o.host;
  t.media = medium_of(o);
  take_common(t, o);
  t.threads = threads;
  t.parameters.keys = o.archapt_keys;
  t.parameters.value_size = m.value_bytes;
  t.parameters.choice = workloads::key_choice::zipf;
  const std::uint64_t live = live_bytes_of(t);
  t.log_count = threads + 1;  // one more for the thread that fills the pool
  t.log_size_bytes = log_size_of(t);
  t.archapt.cache_bytes = static_cast<std::size_t>(static_cast<double>(live) / data_over_cache);
  // Each row of tpcc is a hash with blocks for its fields.
  const std::size_t blocks = is_on_redis(o) ? 6 : 1;
  const std::size_t content = blocks * (pool_size_of(t) - t.spare_bytes),
                    logs = t.log_count * t.log_size_bytes;
  const std::size_t deferred_bytes =
      (threads + 1) * mib;  // space freed by ordered commits stays in use until they are durable
  t.pool_size_bytes =
      logs + std::max((content * 9 / 8 + deferred_bytes) * 7 / 4,
                      logs + mib);  // checksums take 0.74 of home; logs at most half of the pool
  return t;
}

std::string sizes_of(const task& t) {
  return fmt::format(
      "{}: {} keys, {:.1f} MB live; the queue stands for a cache of {:.0f} KB; logs of {:.1f} MB "
      "for {} thread{}",
      t.workload, t.parameters.keys, static_cast<double>(live_bytes_of(t)) / 1e6,
      static_cast<double>(t.archapt.cache_bytes) / 1e3, static_cast<double>(t.log_size_bytes) / 1e6,
      t.threads, t.threads == 1 ? "" : "s");
}

entry entry_of(const char* name) {
  const named& s = *std::ranges::find(systems, std::string_view(name),
                                      [](const named& n) { return std::string_view(n.name); });
  entry e{s.name, s.name, s.mechanism};
  e.own = [s](task& t) {
    t.log_size_bytes = log_size_of(t);
    t.commits = s.commits;
    t.archapt.skip = s.skip;
    t.parameters.coalesce = s.coalesce;
    if (s.coalesce)
      t.pool_size_bytes = t.pool_size_bytes / 4 * 5;  // blocks are rounded up to lines
  };
  return e;
}

std::vector<entry> entries_of(std::initializer_list<const char*> names) {
  std::vector<entry> entries;
  std::ranges::transform(names, std::back_inserter(entries), entry_of);
  return entries;
}

panel ratios_of(const panel& p, std::span<const pair> pairs, std::string name) {
  panel out{std::move(name), p.x, fmt::format("{}, of one over the other", p.y), p.xs, {},
            p.bars,          true};
  for (const pair& of : pairs) {
    const series *a = p.find(of.a), *b = p.find(of.b);
    if (a == nullptr || b == nullptr) continue;
    const std::string both = fmt::format("{} / {}", of.a, of.b);
    series& line = out.lines.emplace_back(series{both, both, false, {}});
    for (std::size_t i = 0; i < p.xs.size(); ++i) {
      auto& point = line.points.emplace_back();
      if (a->points[i] && b->points[i] && b->points[i]->median != 0)
        point = combined({&*a->points[i], &*b->points[i]},
                         [](std::span<const double> of_both) { return of_both[0] / of_both[1]; });
    }
  }
  return out;
}

bool is_measured(const panel& ratios, const pair& of) {
  const series* const s = ratios.find(fmt::format("{} / {}", of.a, of.b));
  return s != nullptr && std::ranges::any_of(s->points, [](const auto& p) { return bool(p); });
}

std::string verdict_of(const panel& ratios, const requirement& d) {
  const std::string name = fmt::format("{} / {}", d.what.a, d.what.b);
  const series* s = ratios.find(name);
  std::vector<double> values;
  std::size_t lowest = 0, highest = 0;
  for (std::size_t i = 0; s != nullptr && i < s->points.size(); ++i) {
    if (!s->points[i]) continue;
    const double here = s->points[i]->median;
    if (values.empty() || here < s->points[lowest]->median) lowest = i;
    if (values.empty() || here > s->points[highest]->median) highest = i;
    values.push_back(here);
  }
  if (values.empty()) return fmt::format("due, {}, {}: not measured", ratios.name, name);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) /
                      static_cast<double>(values.size()),
               least = std::ranges::min(values);
  std::string asked;
  bool met = true;
  const auto ask = [&](const char* words, const std::optional<double>& bound, bool holds) {
    if (!bound) return;
    asked += fmt::format("{}{} {:.2f}", asked.empty() ? "" : ", ", words, *bound);
    met = met && holds;
  };
  ask("in the mean at least", d.least_mean, mean >= d.least_mean.value_or(0));
  ask("nowhere below", d.least, least >= d.least.value_or(0));
  ask("in the mean at most", d.most_mean, mean <= d.most_mean.value_or(0));
  return fmt::format("due, {}, {}: {}; measured: mean {:.2f}, from {:.2f} ({}) to {:.2f} ({}): {}",
                     ratios.name, name, asked, mean, least, ratios.xs[lowest],
                     s->points[highest]->median, ratios.xs[highest], met ? "met" : "missed");
}

series values_of(std::string name, std::vector<std::optional<double>> values) {
  series s{name, name, false, {}};
  for (const auto& v : values) s.points.push_back(v ? std::optional(known(*v)) : std::nullopt);
  return s;
}

}  // namespace stele::bench::archapt
