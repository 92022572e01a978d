// Medians, and the bootstrap of what is computed of them.
#include <base/assert.h>
#include <base/rng.h>
#include <bench/spread.h>

#include <algorithm>
#include <cmath>

namespace stele::bench {
namespace {

constexpr std::size_t drawings = 2000, cut_off = drawings * 25 / 1000;  // at each end

double middle_of(std::vector<double>& values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// The number of runs that the parts with runs have in common; 0: none, or not the same.
std::size_t runs_in_common(const std::vector<const spread*>& parts) {
  std::size_t n = 0;
  for (const spread* part : parts) {
    if (part->runs.empty()) continue;
    if (n != 0 && part->runs.size() != n) return 0;
    n = part->runs.size();
  }
  return n;
}

using value_of = std::function<double(const spread& part)>;

double computed(const std::vector<const spread*>& parts,
                const std::function<double(std::span<const double>)>& f, const value_of& of) {
  std::vector<double> values;
  for (const spread* part : parts) values.push_back(of(*part));
  return f(values);
}

}  // namespace

spread spread_of(std::vector<double> values) {
  STELE_ASSERT(!values.empty());
  spread s;
  s.runs = values;
  s.median = middle_of(values);
  s.min = values.front(), s.max = values.back();
  return s;
}

double median_of(std::span<const double> runs, drawing drawn) {
  std::vector<double> values;
  values.reserve(drawn.size());
  for (const std::size_t i : drawn) values.push_back(runs[i]);
  return middle_of(values);
}

interval bootstrap(std::size_t runs, const std::function<double(drawing)>& statistic,
                   std::uint64_t seed) {
  STELE_ASSERT(runs != 0);
  base::rng random(seed);
  std::vector<std::size_t> drawn(runs);
  std::vector<double> values;
  for (std::size_t n = 0; n < drawings; ++n) {
    for (std::size_t& i : drawn) i = random.below(runs);
    if (const double v = statistic(drawn); std::isfinite(v)) values.push_back(v);
  }
  if (values.empty()) return {std::nan(""), std::nan("")};
  std::ranges::sort(values);
  const std::size_t cut = cut_off * values.size() / drawings;
  return {values[cut], values[values.size() - 1 - cut]};
}

std::optional<interval> interval_of(const spread& s) {
  if (s.within) return s.within;
  if (s.runs.size() < 2) return std::nullopt;
  return bootstrap(s.runs.size(), [&](drawing drawn) { return median_of(s.runs, drawn); });
}

spread combined(const std::vector<const spread*>& parts,
                const std::function<double(std::span<const double>)>& f) {
  const double all = computed(parts, f, [](const spread& s) { return s.median; });
  const std::size_t n = runs_in_common(parts);
  if (n == 0) {
    const auto end = [&](double spread::* which) {
      return computed(parts, f, [&, first = parts.front()](const spread& s) {
        return &s == first ? s.*which : s.median;
      });
    };
    const auto [low, high] = std::minmax({end(&spread::min), end(&spread::max)});
    return {low, all, high};
  }
  std::vector<double> each;
  for (std::size_t run = 0; run < n; ++run)
    each.push_back(computed(
        parts, f, [&](const spread& s) { return s.runs.empty() ? s.median : s.runs[run]; }));
  spread s = spread_of(std::move(each));
  s.median = all;
  if (n > 1)
    s.within = bootstrap(n, [&](drawing drawn) {
      return computed(parts, f, [&](const spread& part) {
        return part.runs.empty() ? part.median : median_of(part.runs, drawn);
      });
    });
  return s;
}

}  // namespace stele::bench
