// One verdict for each claim of a publication: whether what was measured here agrees.
//
// A claim agrees where the interval of the measured value and that of the expected one meet; a
// value without an interval counts as it is. A claim that agrees only as one of its other readings
// holds under that reading's rule.
#pragma once

#include <bench/figures/claims.h>

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// The claims about a figure, of what its chart has. `under` names what the whole chart was measured
// with where that is not the default, such as a host.
std::vector<verdict> verdicts_of(const chart& c, std::string_view paper, std::string_view figure,
                                 std::span<const stated::statement> statements,
                                 const std::string& under = "");
// The same of no chart: nothing is measured.
std::vector<verdict> unmeasured_verdicts(std::string_view paper, std::string_view figure);

// Other work while the chart was measured: what was timed on a busy machine is marked, because runs
// that vary more agree more easily.
void set_load(chart& c, const std::optional<machine_load>& load);

// Gives the claims in `to` the readings of the same claims in `from`; appends the others.
void merge(std::vector<verdict>& to, const std::vector<verdict>& from);

std::string table_of(const std::vector<verdict>& verdicts);
// What two measurements of the same claims have in common, and a table of the readings whose
// intervals do not meet.
std::string comparison_of(const std::vector<verdict>& now, const std::vector<verdict>& then);
nlohmann::json json_of(const verdict& v);
// Nullopt: it is no verdict of json_of.
std::optional<verdict> verdict_in(const nlohmann::json& j);

}  // namespace stele::bench
