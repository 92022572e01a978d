// Table I and figure 10 of Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for
// Persistent Memory" (2019): the dirty share of the lines that transactions write back, and the
// effect of coalescing memory on it.
//
// Both are computed from tapes, so they are functions of the settings: `traced_operations`
// operations, one per transaction, by one thread, on `traced_keys` keys with values of 128 bytes
// (figure 10: of 32 bytes too), over a filled pool; filling is not counted.
#pragma once

#include <bench/figures/statement.h>
#include <bench/figures/sweep.h>

#include <span>
#include <string_view>

namespace stele::bench::archapt {

// The text's statements about both, for claims_of: figures "I" and "10"; with the host, if any.
std::span<const stated::statement> dirtiness_statements(std::string_view host = "") noexcept;

// Table I: mean dirtiness under undo and redo, for home and logs separately, beside the paper's.
// Adds its panel and notes. Errors: those of pools and tapes.
[[nodiscard]] result<> measure_dirtiness_table(const sweep_options& o, chart& into);

// Figure 10: under undo, mean and distribution with and without coalescing memory, also for
// structures whose nodes have separate keys and values (kv, hash, rbtree, which the paper does not
// have); the lines that a transaction writes back; the memory of the structures. Adds and fails
// like measure_dirtiness_table.
[[nodiscard]] result<> measure_dirtiness(const sweep_options& o, chart& into);

}  // namespace stele::bench::archapt
