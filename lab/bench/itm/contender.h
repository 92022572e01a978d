// Atomic blocks of -fgnu-tm as a contender. Only one at a time: a process has one pool for atomic
// blocks.
#pragma once

#include <bench/contender.h>

namespace stele::bench {

// Errors: unsupported, except for sps and rbtree with 8-byte values and one operation per
// transaction.
[[nodiscard]] contender_result make_itm(const task& t, const std::string& mechanism);

}  // namespace stele::bench
