// The memory that atomic blocks of this process work on: the open pool, or none.
//
// Blocks need locks and a clock also when no pool is open; those are an anonymous pool's, in which
// nobody ever allocates. So there is always a runtime, and one rule for ordinary memory. The domain
// changes while no block runs (see serial_lock.h).
#pragma once

#include <stele/error.h>
#include <tx/runtime.h>

namespace stele::itm {

extern constinit std::atomic<detail::runtime*>
    current_runtime;  // null: the anonymous one, not made yet
detail::runtime& make_anonymous_current();

// The open pool, or the anonymous one. The calling thread is inside the serial lock.
inline detail::runtime& current_domain() {
  detail::runtime* const r = current_runtime.load(std::memory_order_acquire);
  return r != nullptr ? *r : make_anonymous_current();
}

// Where the pool of this id is always mapped: objects in it hold plain pointers. Below what Linux
// hands out on its own.
std::uintptr_t mapping_address(std::uint64_t pool_id) noexcept;

// An error that leaves a block no way on; it has been rolled back. Returns when the block is to run
// again.
void report_failure(const error& why);

}  // namespace stele::itm
