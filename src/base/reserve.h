// Room in a vector before the point from which on nothing may fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stele::base {

// The next `more` elements take no memory. Grows by doubling, like push_back. Throws
// std::bad_alloc, with the vector as it was.
template <class T>
void reserve_more(std::vector<T>& v, std::size_t more) {
  if (v.capacity() - v.size() < more) v.reserve(std::max(2 * v.capacity(), v.size() + more));
}

}  // namespace stele::base
