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

}  // namespace stele::bench
