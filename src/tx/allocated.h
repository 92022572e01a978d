// What this thread's running update has taken from the heap, less what it has freed, in bytes. For
// a front end that keeps count of what its pool holds: asked before each commit, it costs no walk.
#pragma once

#include <cstdint>

namespace stele::detail {

std::int64_t bytes_allocated_by_transaction() noexcept;

}  // namespace stele::detail
