// Reserves vector capacity before the point after which nothing may fail.
#pragma once

#include <base/assert.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stele::base {

// After this call the next `more` elements need no allocation. Grows by doubling, like push_back.
// Throws std::bad_alloc and leaves the vector unchanged.
template <class T>
void reserve_more(std::vector<T>& v, std::size_t more) {
  if (v.capacity() - v.size() < more) v.reserve(std::max(2 * v.capacity(), v.size() + more));
  STELE_ASSERT(v.capacity() - v.size() >= more);
}

}  // namespace stele::base
