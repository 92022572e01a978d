// The evaluation of Zhao, Li, Yoon, Xie, Jouppi, "Kiln: Closing the Performance Gap Between Systems
// With and Without Persistence Support" (2013), sections 1 and 6, measured again on the simulated
// machine. docs/papers/kiln.md says what each figure measures and how it differs.
#pragma once

#include <bench/figures/sweep.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "1", "6" to "11", "overflow", "sensitivity".
std::vector<std::string> kiln_figures();

// Errors: invalid_argument (unknown figure); those of the measurements.
[[nodiscard]] result<chart> measure_kiln(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
