// The evaluation of Hu, Ren, Badam, Shu, Moscibroda, "Log-Structured Non-Volatile Main Memory"
// (2017), section 5, measured again: figures 4 to 13, and wear. docs/papers/lsnvmm.md says what
// each figure measures and how it differs.
#pragma once

#include <bench/figures/charge_rule.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "4" to "13".
std::vector<std::string> lsnvmm_figures();
// together, standalone: of those figures that are timed on the medium.
std::span<const charge_rule> lsnvmm_charges() noexcept;
std::vector<std::string> lsnvmm_timed_figures();

// Errors: invalid_argument (unknown figure or charging rule); cancelled, when nothing was measured;
// those of the measurements.
[[nodiscard]] result<chart> measure_lsnvmm(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
