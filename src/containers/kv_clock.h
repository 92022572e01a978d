// The time by which items of key-value stores expire: the system's clock, in milliseconds since
// 1970, which does not go backwards within a process. After a step back it stands still until the
// system's clock has caught up, so that an item that was not seen is not seen again.
#pragma once

#include <cstdint>

namespace stele::detail {

// Thread-safe.
std::uint64_t kv_now() noexcept;
// Milliseconds by which the system's clock is behind the greatest time seen; 0: it is not.
std::uint64_t kv_clock_behind() noexcept;
// The earliest expiry time that this thread has given to an item since it set this variable to the
// greatest number.
inline constinit thread_local std::uint64_t kv_earliest_put = ~std::uint64_t{0};

// For tests: another clock; null: the system's. Forgets the greatest time seen.
void set_kv_clock(std::uint64_t (*clock)() noexcept) noexcept;

}  // namespace stele::detail
