// Compares a chart with each statement of the text about its figure.
#pragma once

#include <bench/figures/chart.h>
#include <bench/figures/statement.h>

#include <span>
#include <string_view>
#include <vector>

namespace stele::bench {

// A claim for each statement about `figure`, in the order of statements, for the
// blurred-persistence evaluation. Claims whose series or places the chart lacks stay unmeasured.
std::vector<claim> claims_of(const chart& c, std::string_view figure);
// The same for the statements of another publication.
std::vector<claim> claims_of(const chart& c, std::string_view figure,
                             std::span<const stated::statement> statements);

// The value of the statement at each of its places; `drawn`: of these runs alone, where a point has
// so many.
std::vector<double> values_of(const chart& c, const stated::statement& s, drawing drawn = {});

// `sum_up` of the statement's values, and its interval: runs are drawn for all places together.
struct reading {
  double value = 0;
  std::optional<interval> within;  // nullopt: no point has runs
};
using summary = double (*)(const std::vector<double>& values);
// Nullopt: nothing was measured.
std::optional<reading> read(const chart& c, const stated::statement& s, summary sum_up);

double mean_of(const std::vector<double>& values);

}  // namespace stele::bench
