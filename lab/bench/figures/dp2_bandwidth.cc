// The figures of the simulated controller: write bandwidth under its scheduling rules, and wear by
// log writes.
#include <bench/figures/dp2_parts.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench::dp2 {
namespace {

struct controller_case {
  const char *name, *label;
  controller_setting how;
};
constexpr controller_case unified[] = {
    {"strict", "no rule", {"strict", long_retention_s}},
    {"rule1", "rule 1", {"rule1", long_retention_s}},
    {"rule2", "rule 2", {"rule2", long_retention_s}},
    {"rules", "both rules", {"rules", long_retention_s}},
    {"ideal", "no barriers (loses data)", {"ideal", long_retention_s}}};
constexpr controller_case dual[] = {
    {"strict", "no rule, 10^7 s", {"strict", long_retention_s}},
    {"strict dual", "no rule", {"strict", short_retention_s}},
    {"rule1 dual", "rule 1", {"rule1", short_retention_s}},
    {"rule2 dual", "rule 2", {"rule2", short_retention_s}},
    {"rules dual", "both rules", {"rules", short_retention_s}},
    {"ideal dual", "no barriers (loses data)", {"ideal", short_retention_s}}};

// Each with what the panel's name says of it.
using controller_cases = std::vector<controller_case>;
// Of the log, records and commits alone are written with the shorter retention.
controller_cases with_truncations_as_data(std::span<const controller_case> of) {
  controller_cases all(of.begin(), of.end());
  for (controller_case& c : all)
    if (c.how.log_retention_s != long_retention_s) c.how.truncation_retention = "data";
  return all;
}
controller_cases without_truncations(std::span<const controller_case> of) {
  controller_cases all(of.begin(), of.end());
  for (controller_case& c : all) c.how.truncations = false;
  return all;
}
controller_cases without_guards(controller_cases of) {
  static constexpr std::pair<std::string_view, const char*> bare[] = {
      {"rule1", "bare_rule1"}, {"rule2", "bare_rule2"}, {"rules", "bare"}};
  for (controller_case& c : of)
    for (const auto& [guarded, unguarded] : bare)
      if (c.how.scheduler == guarded) c.how.scheduler = unguarded;
  return of;
}
struct panel_of_cases {
  std::string name;
  controller_cases cases;
};
std::vector<panel_of_cases> with_unsafe_ones(std::span<const controller_case> safe) {
  return {
      {"", {safe.begin(), safe.end()}},
      {", without truncations (loses data)", without_truncations(safe)},
      {", without guards (loses data)", without_guards({safe.begin(), safe.end()})},
      {", without truncations and guards (loses data)", without_guards(without_truncations(safe))}};
}

struct case_panel {
  panel p;
  controller_cases cases;
};

case_panel empty_panel(std::string name, std::string x, std::vector<std::string> xs,
                       controller_cases cases) {
  panel p{std::move(name), std::move(x), "MB of line writes a second", std::move(xs), {}};
  for (const controller_case& l : cases)
    p.lines.push_back(empty_series(l.name, l.label, p.xs.size()));
  return {std::move(p), std::move(cases)};
}

// Fills a place of the panels: one trace under each of their cases. Returns false when interrupted.
result<bool> fill_place(const sweep_options& o, std::span<case_panel> panels, std::size_t place,
                        std::size_t value_size, unsigned threads) {
  if (o.cancelled()) return false;
  const auto trace = trace_of(o, "hash", value_size, threads);
  if (!trace) return std::unexpected(trace.error());
  for (auto& [p, cases] : panels) {
    o.progress(fmt::format("{}: {} B, {} threads", p.name, value_size, threads));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (o.cancelled()) return false;
      const auto bandwidth = bandwidth_of(*trace, cases[i].how);
      if (!bandwidth) return std::unexpected(bandwidth.error());
      put(p.lines[i], place, *bandwidth / 1e6);
    }
  }
  return true;
}

void add_panels(case_panel from, chart& c) {
  c.panels.push_back(relative_to(from.p, "strict", from.p.name + ", over no rule"));
  c.panels.push_back(std::move(from.p));
}

result<> by_value_size(const sweep_options& o, chart& c, const std::vector<panel_of_cases>& all) {
  static constexpr unsigned counts[] = {1, 4};
  std::array<std::vector<case_panel>, std::size(counts)> panels;
  for (std::size_t t = 0; t < panels.size(); ++t) {
    for (const panel_of_cases& of : all)
      panels[t].push_back(empty_panel((counts[t] == 1 ? "one thread" : "four threads") + of.name,
                                      "bytes of a value", value_axis(), of.cases));
    for (std::size_t i = 0; i < value_sizes.size() && c.complete; ++i) {
      const auto filled = fill_place(o, panels[t], i, value_sizes[i], counts[t]);
      if (!filled) return std::unexpected(filled.error());
      c.complete = *filled;
    }
  }
  for (std::size_t n = 0; n < all.size(); ++n)
    for (auto& of_count : panels) add_panels(std::move(of_count[n]), c);
  return {};
}

}  // namespace

result<> measure_rules(const sweep_options& o, chart& c) {
  return by_value_size(o, c, with_unsafe_ones(unified));
}

result<> measure_rules_with_dual(const sweep_options& o, chart& c) {
  std::vector<panel_of_cases> all = with_unsafe_ones(dual);
  all.insert(all.begin() + 1, {", truncations kept as data", with_truncations_as_data(dual)});
  return by_value_size(o, c, all);
}

result<> measure_threads(const sweep_options& o, chart& c) {
  static constexpr unsigned counts[] = {1, 2, 4, 8, 16};
  for (const std::size_t size : value_sizes) {
    case_panel one = empty_panel(fmt::format("{} B", size), "threads", {"1", "2", "4", "8", "16"},
                                 {std::begin(unified), std::end(unified)});
    for (std::size_t i = 0; i < std::size(counts) && c.complete; ++i) {
      const auto filled = fill_place(o, {&one, 1}, i, size, counts[i]);
      if (!filled) return std::unexpected(filled.error());
      c.complete = *filled;
    }
    add_panels(std::move(one), c);
  }
  return {};
}

result<> measure_endurance(const sweep_options& o, chart& c) {
  const auto table = sim::dp2_memory("strict").retention;
  const double alpha =
      std::ranges::find(table, short_retention_s, &sim::retention_row::retention_s)->speedup;
  panel p{"lifetime", "workload", "%", workload_axis(), {}, true};
  p.lines = {empty_series("log share", "line writes that go to logs", workloads.size()),
             empty_series("equation", "longer, by equation (1)", workloads.size()),
             empty_series("iterations", "longer, by iterations saved", workloads.size())};
  for (std::size_t i = 0; i < workloads.size() && c.complete; ++i) {
    c.complete = !o.cancelled();
    if (!c.complete) break;
    o.progress(workloads[i]);
    const auto trace = trace_of(o, workloads[i], 8, 1);
    if (!trace) return std::unexpected(trace.error());
    const auto sums = count_writes(*trace);
    if (!sums) return std::unexpected(sums.error());
    const double share = sums->log_share();
    put(p.lines[0], i, 100 * share);
    put(p.lines[1], i, 100 * (sim::endurance(share, alpha) - 1));
    put(p.lines[2], i, 100 * (sim::endurance_by_iterations(share, alpha) - 1));
  }
  c.panels.push_back(std::move(p));
  return {};
}

}  // namespace stele::bench::dp2
