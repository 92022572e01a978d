// See update_lock.h.
#include "update_lock.h"

#include <thread>

namespace stele::python {

namespace {

constexpr std::chrono::milliseconds look_again{1};

}  // namespace

bool update_lock::try_lock_for(seconds limit) {
  STELE_ASSERT(limit.count() > 0);
  const auto until = std::chrono::steady_clock::now() + limit;
  while (library_waits_.load() != 0) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(look_again);
  }
  return mutex_.try_lock_until(until);
}

bool update_lock::acquire() noexcept {
  ++library_waits_;
  bool held;
  do held = mutex_.try_lock_for(look_again);
  while (!held && !closes_.load());
  STELE_ASSERT(library_waits_.load() != 0);
  --library_waits_;
  return held;
}

}  // namespace stele::python
