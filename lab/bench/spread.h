// What several runs measured, and how far it is known: median, ends, and a 95 % interval.
//
// The interval is a percentile bootstrap. Whole runs are drawn with replacement, as many as there
// are, the value is computed of what was drawn, and this is repeated; the interval has the middle
// 95 % of the values. It is a function of the runs and the seed. For the median of five runs or
// fewer it reaches from the least run to the most; of independent runs that covers the true median
// 94 times in a hundred with five, and 75 times with three.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace stele::bench {

struct interval {
  double low = 0, high = 0;
  bool operator==(const interval&) const = default;
};

struct spread {
  double min = 0, median = 0, max = 0;
  std::vector<double> runs = {};        // in their order; empty: the value is of no single run
  std::optional<interval> within = {};  // of what combined() computed
};
// Precondition: at least one value.
spread spread_of(std::vector<double> values);
// Of a count, or of what was measured once.
inline spread known(double value) {
  return {value, value, value};
}

// Which runs were drawn: as many as there are, some repeatedly.
using drawing = std::span<const std::size_t>;

// Precondition: `drawn` is not empty and has indices of `runs` alone.
double median_of(std::span<const double> runs, drawing drawn);

// The interval of `statistic`, of so many runs. Values that are not finite are left out; not a
// number when none is finite. Precondition: runs > 0.
interval bootstrap(std::size_t runs, const std::function<double(drawing)>& statistic,
                   std::uint64_t seed = 1);

// The interval of a median, or of a combined value; nullopt: fewer than two runs.
std::optional<interval> interval_of(const spread& s);

// A value of several medians. When the parts have equally many runs, these are drawn together: run
// i of each part was measured beside run i of the others. A part without runs counts as known.
// Precondition: at least one part.
spread combined(const std::vector<const spread*>& parts,
                const std::function<double(std::span<const double>)>& f);

}  // namespace stele::bench
