// The evaluation of Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual
// Persistency in Persistent Memory" (2015), sections 2.3 and 4, measured again. docs/papers/dp2.md
// says what each figure measures and how it differs.
#pragma once

#include <bench/figures/charge_rule.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "2", "5" to "10", "endurance".
std::vector<std::string> dp2_figures();
// ordered, waits: of the figures of throughput (7, 9, 10). In figure 2 fences always wait.
std::span<const charge_rule> dp2_charges() noexcept;
std::vector<std::string> dp2_timed_figures();

// Errors: invalid_argument (unknown figure or charging rule); cancelled, when nothing was measured;
// those of the measurements.
[[nodiscard]] result<chart> measure_dp2(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
