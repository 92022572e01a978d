// The evaluation of Lu, Shu and Sun, "Blurred Persistence: Efficient Transactions in Persistent
// Memory" (2016), section 5, measured again: figures 9 to 17 and table II. docs/papers/blurred.md
// says what each figure measures and how it differs.
#pragma once

#include <bench/figures/charge_rule.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "9" to "17", "II".
std::vector<std::string> blurred_figures();
// each, once: of all these figures.
std::span<const charge_rule> blurred_charges() noexcept;

// Errors: invalid_argument (unknown figure or charging rule); not_found (unknown mechanism);
// cancelled, when nothing was measured; those of the measurements.
[[nodiscard]] result<chart> measure_blurred(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
