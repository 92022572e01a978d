// Computes the values of statements from panels.
#include <bench/figures/claims.h>
#include <bench/figures/stated.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stele::bench {
namespace {

using stated::metric;
using stated::statement;

// The points of a panel, of all runs or of those drawn.
class points {
 public:
  points(const panel& p, drawing drawn) : p_(p), drawn_(drawn) {}

  std::optional<double> at(std::string_view name, std::size_t place) const {
    constexpr std::string_view better = "better of both";
    if (name.starts_with(better))
      return better_of_both(place, std::string(name.substr(better.size())));
    const series* s = p_.find(name);
    if (s == nullptr || !s->points[place]) return std::nullopt;
    return value_of(*s->points[place]);
  }
  double value_of(const spread& point) const {
    const bool draws = !drawn_.empty() && point.runs.size() == drawn_.size();
    return draws ? median_of(point.runs, drawn_) : point.median;
  }

 private:
  // The better of vcbp and blurred, with which the text compares the adaptive mechanism; not a
  // series of the chart. `suffix`: of their names.
  std::optional<double> better_of_both(std::size_t place, const std::string& suffix) const {
    const auto vcbp = at("vcbp" + suffix, place), blurred = at("blurred" + suffix, place);
    return vcbp && blurred ? std::optional(std::max(*vcbp, *blurred)) : std::nullopt;
  }

  const panel& p_;
  drawing drawn_;
};

// The value of the statement at a place; NaN when a needed series is missing.
double read(const statement& s, const points& p, std::size_t place) {
  const auto at = [&](const char* name) { return p.at(name, place).value_or(std::nan("")); };
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

double extent_of(const series& s, const points& of) {
  double least = HUGE_VAL, most = 0;
  for (const auto& v : s.points) {
    if (!v) return std::nan("");
    least = std::min(least, of.value_of(*v));
    most = std::max(most, of.value_of(*v));
  }
  return most / least;
}

void keep(double value, std::vector<double>& into) {
  if (std::isfinite(value)) into.push_back(value);
}

void measure_in(const panel& p, const statement& s, drawing drawn, std::vector<double>& into) {
  const points of(p, drawn);
  if (s.how == metric::extent) {
    for (const series& one : p.lines)
      if (*s.a == '\0' || one.name == s.a) keep(extent_of(one, of), into);
    return;
  }
  for (std::size_t i = 0; i < p.xs.size(); ++i)
    if (*s.at == '\0' || p.xs[i] == s.at) keep(read(s, of, i), into);
}

bool is_of(const panel& p, const statement& s) {
  return *s.panel == '\0' || p.name == s.panel;
}

// The most runs that a point of the statement's panels has.
std::size_t runs_of(const chart& c, const statement& s) {
  std::size_t most = 0;
  for (const panel& p : c.panels)
    for (const series& one : p.lines)
      for (const auto& point : one.points)
        if (is_of(p, s) && point) most = std::max(most, point->runs.size());
  return most;
}

}  // namespace

double mean_of(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

std::vector<double> values_of(const chart& c, const statement& s, drawing drawn) {
  std::vector<double> values;
  for (const panel& p : c.panels)
    if (is_of(p, s)) measure_in(p, s, drawn, values);
  return values;
}

std::optional<reading> read(const chart& c, const statement& s, summary sum_up) {
  const std::vector<double> values = values_of(c, s);
  if (values.empty()) return std::nullopt;
  reading r{sum_up(values), std::nullopt};
  if (const std::size_t runs = runs_of(c, s); runs > 1)
    r.within = bootstrap(runs, [&](drawing drawn) {
      const auto drawn_values = values_of(c, s, drawn);
      return drawn_values.empty() ? std::nan("") : sum_up(drawn_values);
    });
  return r;
}

std::vector<claim> claims_of(const chart& c, std::string_view figure) {
  return claims_of(c, figure, stated::statements);
}

std::vector<claim> claims_of(const chart& c, std::string_view figure,
                             std::span<const statement> statements) {
  std::vector<claim> claims;
  for (const statement& s : statements) {
    if (s.figure != figure) continue;
    const auto mean = read(c, s, mean_of);
    claims.push_back(
        {s.what, s.stated, s.unit, values_of(c, s), mean ? mean->within : std::nullopt});
  }
  return claims;
}

}  // namespace stele::bench
