// The evaluation of Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual
// Persistency in Persistent Memory" (2015), sections 2.3 and 4, redrawn. What each figure measures
// and how it differs: docs/papers/dp2.md.
#pragma once

#include <bench/figures/sweep.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "2", "5" to "10", "endurance".
std::vector<std::string> dp2_figures();

// Errors: invalid_argument (no such figure); cancelled, when nothing was measured; those of what is
// measured.
[[nodiscard]] result<chart> measure_dp2(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
