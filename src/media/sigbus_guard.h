// Handles mapped pages of a file that are gone, because the file was truncated or the page cannot
// be read. Touching such a page raises SIGBUS, which ends a process; here it becomes an error of
// the pool.
//
// The first guarded range installs a SIGBUS handler. On a fault in a guarded range it sets the
// range's flag and replaces the page with zeroes, so the thread continues to the place that checks
// the flag. Any other fault goes to the previous handler. Works for faults in any thread;
// thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

namespace stele::media {

class sigbus_guard {
 public:
  sigbus_guard() noexcept = default;
  // Guards [begin, begin + size); `lost` outlives this object. At most 1024 ranges are guarded at a
  // time; further ones are not.
  sigbus_guard(const std::byte* begin, std::size_t size, std::atomic<bool>& lost) noexcept;
  sigbus_guard(sigbus_guard&& other) noexcept;
  sigbus_guard& operator=(sigbus_guard&& other) noexcept;
  ~sigbus_guard();

 private:
  int slot_ = -1;
};

}  // namespace stele::media
