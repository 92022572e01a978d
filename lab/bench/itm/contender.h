// Atomic blocks of -fgnu-tm as a contender; one at a time, since a process has one pool for them.
#pragma once

#include <bench/contender.h>

namespace stele::bench {

// Errors: unsupported, for other workloads than sps and rbtree with 8-byte values, one operation a
// transaction.
[[nodiscard]] contender_result make_itm(const task& t, const std::string& mechanism);

}  // namespace stele::bench
