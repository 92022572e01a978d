// The pool that the atomic blocks of this process work on.
//
// Blocks need locks and a clock even if no pool is open. Then they use an anonymous pool, in which
// nothing is ever allocated. So there is always a runtime, and one rule for ordinary memory. The
// domain changes only while no block runs (serial_lock.h).
#pragma once

#include <stele/error.h>
#include <tx/runtime.h>

namespace stele::itm {

// Null: the anonymous one, not yet created.
extern constinit std::atomic<detail::runtime*> current_runtime;
detail::runtime& make_anonymous_current();

// The open pool, or the anonymous one. The calling thread must be inside the serial lock.
inline detail::runtime& current_domain() {
  detail::runtime* const r = current_runtime.load(std::memory_order_acquire);
  return r != nullptr ? *r : make_anonymous_current();
}

// The address at which the pool with this id is always mapped, because its objects contain plain
// pointers. Below the addresses that Linux assigns by itself.
std::uintptr_t mapping_address(std::uint64_t pool_id) noexcept;

// Reports an error after which a block cannot go on; the block has been rolled back. Returns if the
// block must run again.
void report_failure(const error& why);

}  // namespace stele::itm
