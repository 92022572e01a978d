// The evaluation of Lu, Shu and Sun, "Blurred Persistence: Efficient Transactions in Persistent
// Memory" (2016), section 5, redrawn: figures 9 to 17 and table II. What each measures and how it
// differs: docs/papers/blurred.md.
#pragma once

#include <bench/figures/sweep.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "9" to "17", "II".
std::vector<std::string> blurred_figures();

// Errors: invalid_argument (no such figure); not_found (a mechanism that is not there); cancelled,
// when nothing was measured; those of what is measured.
[[nodiscard]] result<chart> measure_blurred(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
