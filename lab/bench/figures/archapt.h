// The evaluation of Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for
// Persistent Memory" (2019), sections II and V, redrawn: figures 2, 3, 6 to 9. What each measures
// and how it differs: docs/papers/archapt.md.
#pragma once

#include <bench/figures/sweep.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "2", "3", "6" to "9".
std::vector<std::string> archapt_figures();

// Errors: invalid_argument (no such figure); cancelled, when nothing was measured; those of what is
// measured.
[[nodiscard]] result<chart> measure_archapt(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
