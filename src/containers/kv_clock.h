// The time by which items of key-value stores expire: the system's clock, in milliseconds since
// 1970. After a small step back of the system's clock it stands still within a process until that
// clock has caught up, so that an expired item is not seen again. After a greater step back it
// follows the system's clock: the time before was wrong, and standing still would stop expiry.
#pragma once

#include <cstdint>

namespace stele::detail {

// The greatest step back after which time stands still.
inline constexpr std::uint64_t kv_clock_greatest_step_back_ms = 10'000;

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
