// Pages of a mapped file that are there no more: truncated by somebody, or unreadable. Touching one
// is SIGBUS, which ends a process; here it is an error of the pool.
//
// The first guarded range installs a handler for SIGBUS. A fault in a guarded range sets the
// range's flag and puts zeroes in place of the page, so that whoever touched it goes on to where
// the flag is asked; any other fault is the former handler's. Signals of threads of any kind;
// thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

namespace stele::media {

class sigbus_guard {
 public:
  sigbus_guard() noexcept = default;
  // Guards [begin, begin + size); `lost` outlives this. At most 1024 at a time; more are not
  // guarded.
  sigbus_guard(const std::byte* begin, std::size_t size, std::atomic<bool>& lost) noexcept;
  sigbus_guard(sigbus_guard&& other) noexcept;
  sigbus_guard& operator=(sigbus_guard&& other) noexcept;
  ~sigbus_guard();

 private:
  int slot_ = -1;
};

}  // namespace stele::media
