// The evaluation of Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for
// Persistent Memory" (2019), sections II and V, measured again: figures 2, 3, 6 to 10, tables I and
// IV. docs/papers/archapt.md says what each figure measures and how it differs.
#pragma once

#include <bench/figures/sweep.h>

#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

// "2", "3", "6" to "10", "I", "IV".
std::vector<std::string> archapt_figures();
// Those that a host can run: sqlite "2", "7", "8", "10", redis also "3", "9", "IV".
std::vector<std::string> archapt_hosted_figures(std::string_view host);

// Errors: invalid_argument (unknown figure, or one that the host of `o` cannot run); cancelled,
// when nothing was measured; those of the measurements.
[[nodiscard]] result<chart> measure_archapt(std::string_view figure, const sweep_options& o);

}  // namespace stele::bench
