// A counter that one thread increments and any thread may read at the same time.
#pragma once

#include <base/assert.h>

#include <cstdint>

namespace stele::base {

class relaxed_counter {
 public:
  relaxed_counter& operator+=(std::uint64_t n) noexcept {
    STELE_ASSERT(value_ + n >= value_);  // it only grows: n is no negative number
    __atomic_store_n(&value_, value_ + n, __ATOMIC_RELAXED);  // no other thread stores
    return *this;
  }
  relaxed_counter& operator++() noexcept { return *this += 1; }
  operator std::uint64_t() const noexcept { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace stele::base
