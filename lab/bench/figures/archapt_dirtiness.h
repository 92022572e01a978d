// Table I and figure 10 of Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for
// Persistent Memory" (2019): how much of the lines that transactions write back was stored to, and
// what coalescing memory changes in it.
//
// Both are read off tapes, so they are functions of the settings: `traced_operations` operations,
// one a transaction and by one thread, on `traced_keys` keys with values of 128 bytes (figure 10:
// of 32 too), over a filled pool; what fills it is not counted.
#pragma once

#include <bench/figures/statement.h>
#include <bench/figures/sweep.h>

#include <span>

namespace stele::bench::archapt {

// What the text states of both, for claims_of: figures "I" and "10".
std::span<const stated::statement> dirtiness_statements() noexcept;

// Table I: mean dirtiness under undo and redo, of home and of logs apart, beside the paper's. Adds
// its panel, claims and notes. Errors: those of pools and tapes.
[[nodiscard]] result<> measure_dirtiness_table(const sweep_options& o, chart& into);

// Figure 10: under undo, mean and distribution with and without coalescing memory, also where nodes
// have keys and values beside them (kv, hash, rbtree, which the paper does not have); the lines
// that a transaction writes back; the memory that the structures take. Likewise.
[[nodiscard]] result<> measure_dirtiness(const sweep_options& o, chart& into);

}  // namespace stele::bench::archapt
