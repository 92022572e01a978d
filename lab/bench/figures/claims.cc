// Computes the values of statements from panels.
#include <bench/figures/claims.h>
#include <bench/figures/stated.h>

#include <algorithm>
#include <cmath>

namespace stele::bench {
namespace {

using stated::metric;
using stated::statement;

// The better of vcbp and blurred, with which the text compares the adaptive mechanism; not a series
// of the chart. `suffix`: of their names.
std::optional<double> better_of_both(const panel& p, std::size_t place, const std::string& suffix);

std::optional<double> value_at(const panel& p, std::string_view name, std::size_t place) {
  constexpr std::string_view better = "better of both";
  if (name.starts_with(better))
    return better_of_both(p, place, std::string(name.substr(better.size())));
  const series* s = p.find(name);
  if (s == nullptr || !s->points[place]) return std::nullopt;
  return s->points[place]->median;
}

std::optional<double> better_of_both(const panel& p, std::size_t place, const std::string& suffix) {
  const auto vcbp = value_at(p, "vcbp" + suffix, place),
             blurred = value_at(p, "blurred" + suffix, place);
  return vcbp && blurred ? std::optional(std::max(*vcbp, *blurred)) : std::nullopt;
}

// The value of the statement at a place; NaN when a needed series is missing.
double read(const statement& s, const panel& p, std::size_t place) {
  const auto at = [&](const char* name) { return value_at(p, name, place).value_or(std::nan("")); };
  const double a = at(s.a);
  switch (s.how) {
    case metric::gain:
      return 100 * (a / at(s.b) - 1);
    case metric::ratio:
      return a / at(s.b);
    case metric::loss:
      return 100 * (1 - a / at(s.b));
    case metric::time_saved:
      return 100 * (1 - at(s.b) / a);
    case metric::overhead_saved:
      return 100 * (1 / at(s.b) - 1 / a) / (1 / at(s.b) - 1 / at("none"));
    case metric::gap_closed:
      return 100 * (a - at(s.b)) / (at("none") - at(s.b));
    case metric::value:
      return a;
    case metric::extent:
      break;
  }
  return std::nan("");
}

double extent_of(const series& s) {
  double least = HUGE_VAL, most = 0;
  for (const auto& v : s.points) {
    if (!v) return std::nan("");
    least = std::min(least, v->median);
    most = std::max(most, v->median);
  }
  return most / least;
}

void keep(double value, std::vector<double>& into) {
  if (std::isfinite(value)) into.push_back(value);
}

void measure_in(const panel& p, const statement& s, std::vector<double>& into) {
  if (s.how == metric::extent) {
    for (const series& one : p.lines)
      if (*s.a == '\0' || one.name == s.a) keep(extent_of(one), into);
    return;
  }
  for (std::size_t i = 0; i < p.xs.size(); ++i)
    if (*s.at == '\0' || p.xs[i] == s.at) keep(read(s, p, i), into);
}

}  // namespace

std::vector<claim> claims_of(const chart& c, std::string_view figure) {
  return claims_of(c, figure, stated::statements);
}

std::vector<claim> claims_of(const chart& c, std::string_view figure,
                             std::span<const statement> statements) {
  std::vector<claim> claims;
  for (const statement& s : statements) {
    if (s.figure != figure) continue;
    claim& k = claims.emplace_back(claim{s.what, s.stated, s.unit, {}});
    for (const panel& p : c.panels)
      if (*s.panel == '\0' || p.name == s.panel) measure_in(p, s, k.measured);
  }
  return claims;
}

}  // namespace stele::bench
