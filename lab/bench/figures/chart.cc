// Writes charts as tables for people and as JSON for programs; derives panels from other panels.
#include <bench/figures/chart.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace stele::bench {
namespace {

using cells = std::vector<std::string>;

std::string cell_of(const panel& p, const std::optional<spread>& point) {
  if (!point) return "-";
  const auto known_to = p.ratios ? interval_of(*point) : std::nullopt;
  return words_of(point->median) + (known_to ? ' ' + words_of(*known_to) : "");
}

std::string table_of(const panel& p) {
  std::vector<cells> lines(1 + p.xs.size());
  lines[0] = {p.x};
  for (const series& s : p.lines) lines[0].push_back(s.stated ? s.label + " (stated)" : s.label);
  for (std::size_t i = 0; i < p.xs.size(); ++i) {
    lines[i + 1] = {p.xs[i]};
    for (const series& s : p.lines) lines[i + 1].push_back(cell_of(p, s.points[i]));
  }
  return fmt::format("\n{}: {}\n{}", p.name, p.y, aligned(lines));
}

std::string table_of(const std::vector<claim>& claims) {
  std::vector<cells> lines = {{"what the text speaks of", "stated there", "measured here"}};
  for (const claim& c : claims) lines.push_back({c.what, c.stated, summary_of(c)});
  return "\nbeside the text\n" + aligned(lines);
}

// JSON has no other numbers.
bool is_number(const spread& s) {
  return std::isfinite(s.min) && std::isfinite(s.median) && std::isfinite(s.max);
}

nlohmann::json json_of(const std::optional<interval>& i) {
  if (!i || !std::isfinite(i->low) || !std::isfinite(i->high)) return nullptr;
  return {{"low", i->low}, {"high", i->high}};
}

nlohmann::json json_of(const panel& p) {
  nlohmann::json all = nlohmann::json::array();
  for (const series& s : p.lines) {
    nlohmann::json points = nlohmann::json::array();
    for (std::size_t i = 0; i < p.xs.size(); ++i)
      if (const auto& v = s.points[i]; v && is_number(*v))
        points.push_back({{"x", p.xs[i]},
                          {"min", v->min},
                          {"median", v->median},
                          {"max", v->max},
                          {"runs", v->runs.size()},
                          {"interval", json_of(interval_of(*v))}});
    all.push_back({{"name", s.name},
                   {"label", s.label},
                   {"stated", s.stated},
                   {"points", std::move(points)}});
  }
  return {{"name", p.name},
          {"x", p.x},
          {"y", p.y},
          {"xs", p.xs},
          {"bars", p.bars},
          {"ratios", p.ratios},
          {"series", std::move(all)}};
}

}  // namespace

std::string words_of(double v) {
  const double size = std::abs(v);
  if (size >= 1e6) return fmt::format("{:.3f} M", v / 1e6);
  if (size >= 1e5) return fmt::format("{:.1f} k", v / 1e3);
  if (size >= 100) return fmt::format("{:.0f}", v);
  if (size >= 10) return fmt::format("{:.1f}", v);
  return fmt::format("{:.2f}", v);
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (const auto& line : lines) {
    out += fmt::format("  {:<{}}", line[0], widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i)
      out += fmt::format("  {:>{}}", line[i], widths[i]);
    out += '\n';
  }
  return out;
}

const series* panel::find(std::string_view series_name) const noexcept {
  const auto found = std::ranges::find(lines, series_name, &series::name);
  return found == lines.end() ? nullptr : &*found;
}

panel relative_to(const panel& p, const std::string& baseline, std::string name) {
  panel out = p;
  out.name = std::move(name);
  out.y = fmt::format("{}, over that of {}", p.y, baseline);
  out.ratios = true;
  const series* base = p.find(baseline);
  for (series& s : out.lines)
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      auto& v = s.points[i];
      if (base == nullptr || !base->points[i]) v.reset();
      if (!v) continue;
      v = combined({&*v, &*base->points[i]},
                   [](std::span<const double> of) { return of[0] / of[1]; });
    }
  return out;
}

panel transposed(const panel& p, std::string x) {
  panel out{p.name, std::move(x), p.y, {}, {}, false, p.ratios};
  for (const series& s : p.lines) out.xs.push_back(s.label);
  for (std::size_t i = 0; i < p.xs.size(); ++i) {
    series& s = out.lines.emplace_back(series{p.xs[i], p.xs[i], false, {}});
    for (const series& old : p.lines) s.points.push_back(old.points[i]);
  }
  return out;
}

std::string words_of(const interval& i) {
  return fmt::format("({}..{})", words_of(i.low), words_of(i.high));
}

std::string summary_of(const claim& c) {
  if (c.measured.empty()) return "-";
  const auto said = [&](double v) {
    return c.unit.empty() ? words_of(v) : fmt::format("{} {}", words_of(v), c.unit);
  };
  const std::string known_to = c.of_mean ? ' ' + words_of(*c.of_mean) : "";
  if (c.measured.size() == 1) return said(c.measured.front()) + known_to;
  const auto [least, most] = std::ranges::minmax(c.measured);
  const double mean =
      std::reduce(c.measured.begin(), c.measured.end()) / static_cast<double>(c.measured.size());
  return fmt::format("{} to {}, mean {}{}", said(least), said(most), said(mean), known_to);
}

std::string table_of(const chart& c) {
  std::string out = fmt::format("{}\nafter {}\n{}\n", c.title, c.source, c.setting);
  if (!c.charge.name.empty())
    out += fmt::format("charging rule {}: {}\n", c.charge.name, c.charge.meaning);
  if (c.load) out += words_of(*c.load) + '\n';
  for (const panel& p : c.panels) out += table_of(p);
  if (!c.verdicts.empty()) out += "\nclaims\n" + table_of(c.verdicts);
  if (!c.claims.empty()) out += table_of(c.claims);
  if (!c.notes.empty()) out += '\n';
  for (const std::string& note : c.notes) out += fmt::format("note: {}\n", note);
  return out;
}

nlohmann::json json_of(const chart& c) {
  nlohmann::json panels = nlohmann::json::array(), claims = nlohmann::json::array();
  for (const panel& p : c.panels) panels.push_back(json_of(p));
  for (const claim& k : c.claims)
    claims.push_back({{"what", k.what},
                      {"stated", k.stated},
                      {"unit", k.unit},
                      {"measured", k.measured},
                      {"interval", json_of(k.of_mean)},
                      {"summary", summary_of(k)}});
  nlohmann::json all = {{"name", c.name},       {"title", c.title},      {"source", c.source},
                        {"setting", c.setting}, {"panels", panels},      {"claims", claims},
                        {"notes", c.notes},     {"complete", c.complete}};
  if (!c.charge.name.empty())
    all["charge"] = {{"name", c.charge.name}, {"meaning", c.charge.meaning}};
  all["verdicts"] = nlohmann::json::array();
  for (const verdict& v : c.verdicts) all["verdicts"].push_back(json_of(v));
  all["load"] = c.load ? json_of(*c.load) : nlohmann::json(nullptr);
  return all;
}

}  // namespace stele::bench
