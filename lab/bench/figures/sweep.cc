// Runs sweeps: one comparison for each place.
#include <bench/figures/sweep.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench {
namespace {

spread scaled(const spread& s, double by) {
  return combined({&s}, [by](std::span<const double> v) { return v[0] * by; });
}

std::vector<panel> empty_panels(const sweep& s) {
  std::vector<panel> panels;
  for (const measure& m : s.measures) {
    panel& p = panels.emplace_back(panel{m.panel, s.x, m.y, s.xs, {}, s.bars});
    for (const entry& e : s.entries)
      p.lines.push_back({e.name, e.label, false, std::vector<std::optional<spread>>(s.xs.size())});
  }
  return panels;
}

result<report> compare_at(const sweep& s, const task& at, const std::string& where,
                          const sweep_options& o) {
  std::vector<std::unique_ptr<contender>> contenders;
  for (const entry& e : s.entries) {
    task t = at;
    t.log_size_bytes = e.log_size_bytes;
    t.label = e.name == e.mechanism ? "" : "-" + e.name;
    e.own(t);
    auto made = make_stele(t, e.mechanism);
    if (!made) return std::unexpected(std::move(made.error()));
    contenders.push_back(std::move(*made));
  }
  comparison c;
  c.what = at;
  c.limits = false;
  c.runs = o.runs;
  c.seconds = o.seconds;
  c.progress = [&](const std::string& what) { o.progress(fmt::format("{}, {}", where, what)); };
  c.cancelled = o.cancelled;
  return compare(std::move(contenders), c);
}

// The points of the same place with each seed. Stated numbers are the same with each.
std::optional<spread> over_charts(const std::vector<chart>& each, std::size_t panel,
                                  std::size_t line, std::size_t place) {
  const series& first = each.front().panels[panel].lines[line];
  if (first.stated) return first.points[place];
  std::vector<double> values;
  for (const chart& c : each)
    if (const auto& point = c.panels[panel].lines[line].points[place])
      values.push_back(point->median);
  return values.empty() ? std::nullopt : std::optional(spread_of(std::move(values)));
}

void add_panels(const std::vector<chart>& each, chart& into) {
  for (std::size_t p = 0; p < each.front().panels.size(); ++p) {
    panel& merged = into.panels.emplace_back(each.front().panels[p]);
    for (std::size_t line = 0; line < merged.lines.size(); ++line)
      for (std::size_t place = 0; place < merged.xs.size(); ++place)
        merged.lines[line].points[place] = over_charts(each, p, line, place);
  }
}

// With each seed until interrupted; the last chart may be incomplete.
result<std::vector<chart>> measure_each(const sweep_options& o,
                                        result<> (*measure)(const sweep_options& o, chart& c)) {
  std::vector<chart> each;
  for (unsigned i = 0; i < std::max(o.seeds, 1u) && (each.empty() || each.back().complete); ++i) {
    sweep_options one = o;
    one.seed = seed_of(o, i);
    one.cancelled = [&o] { return o.cancelled(); };  // which may count
    one.progress = [&](const std::string& what) {
      o.progress(o.seeds < 2 ? what : fmt::format("seed {} of {}, {}", i + 1, o.seeds, what));
    };
    if (auto done = measure(one, each.emplace_back()); !done)
      return std::unexpected(std::move(done.error()));
  }
  return each;
}

}  // namespace

std::uint64_t seed_of(const sweep_options& o, unsigned which) {
  return o.seed + which * std::uint64_t{1000};
}

result<> over_seeds(const sweep_options& o, chart& into,
                    result<> (*measure)(const sweep_options& o, chart& c)) {
  auto each = measure_each(o, measure);
  if (!each) return std::unexpected(std::move(each.error()));
  into.complete = each->back().complete;
  into.of_seeds = true;
  if (!into.complete && each->size() > 1) each->pop_back();
  into.notes.insert(into.notes.end(), each->front().notes.begin(), each->front().notes.end());
  into.notes.push_back(fmt::format("medians of {} seed{}: {}{}", each->size(),
                                   each->size() == 1 ? "" : "s", o.seed,
                                   each->size() == 1 ? "" : ", each 1000 on"));
  add_panels(*each, into);
  return {};
}

void make_quick(sweep_options& o) {
  o.runs = 3;
  o.seeds = 2;
  o.seconds = 0.05;
  o.short_warm_up = 1000;
  o.keys = o.large_keys = std::size_t{1} << 14;
  o.phase_bytes = std::uint64_t{4} << 20;
  o.recovered_bytes = std::uint64_t{32} << 20;
  o.data_bytes = std::uint64_t{4} << 20;
  o.traced_operations = 400;
  o.traced_keys = std::uint64_t{1} << 10;
  o.archapt_keys = std::uint64_t{1} << 12;
  o.archapt_seconds = 0.05;
  o.archapt_objects = std::uint64_t{1} << 14;
  o.archapt_crashes = 20, o.archapt_caches = 4;
  o.kiln_keys = std::uint64_t{1} << 12;
  o.kiln_transactions = 1000;
  o.kiln_large_keys = 32;
  o.kiln_large_transactions = 32;
  o.kiln_large_bytes = 16384;
  o.kiln_written_before = std::uint64_t{1} << 20;
}

measure transactions_per_s(std::string panel) {
  return {std::move(panel), "transactions a second",
          [](const row& r, const task&) { return r.tx_per_s; }};
}

measure operations_per_s(std::string panel) {
  return {std::move(panel), "operations a second", [](const row& r, const task& t) {
            return scaled(r.tx_per_s, static_cast<double>(t.ops_per_tx));
          }};
}

measure value_bytes_per_s(std::string panel) {
  return {std::move(panel), "bytes of values a second", [](const row& r, const task& t) {
            return scaled(r.tx_per_s, static_cast<double>(t.parameters.value_size));
          }};
}

measure aborted_percent(std::string panel) {
  return {std::move(panel), "% of attempts that abort", [](const row& r, const task&) {
            const double aborts = r.aborts_per_tx.value_or(0), share = 100 * aborts / (1 + aborts);
            return known(share);
          }};
}

void take_common(task& t, const sweep_options& o) {
  t.dir = o.dir;
  t.spare_bytes = o.spare_bytes;
  t.seed = t.parameters.seed = o.seed;
}

result<> run(const sweep& s, const sweep_options& o, chart& into) {
  std::vector<panel> panels = empty_panels(s);
  for (std::size_t i = 0; i < s.xs.size() && into.complete; ++i) {
    task t = s.what;
    take_common(t, o);
    s.set(t, i);
    const auto r = o.cancelled() ? std::unexpected(error{errc::cancelled, "interrupted"})
                                 : compare_at(s, t, fmt::format("{} {}", s.x, s.xs[i]), o);
    if (!r && r.error().code == errc::full && s.may_be_full) {
      into.notes.push_back(fmt::format("{} {}: {}", s.x, s.xs[i], r.error().message));
      continue;
    }
    if (!r && r.error().code != errc::cancelled) return std::unexpected(r.error());
    into.complete = r && r->notes.empty();  // a note means: interrupted between runs
    for (std::size_t m = 0; r && m < panels.size(); ++m)
      for (std::size_t e = 0; e < s.entries.size(); ++e)
        panels[m].lines[e].points[i] = s.measures[m].of(r->rows[e], t);
  }
  into.panels.insert(into.panels.end(), panels.begin(), panels.end());
  return {};
}

}  // namespace stele::bench
