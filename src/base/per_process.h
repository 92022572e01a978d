// An object that each process has one of. A child of fork() makes its own: a thread that the child
// lacks may hold a lock of its parent's. Leaked, so that it outlives whatever uses it.
#pragma once

#include <base/forks.h>

namespace stele::base {

template <class T>
T& per_process() {
  static T* one = new T;
  [[maybe_unused]] static const bool at_fork = call_in_children(+[] { one = new T; });
  return *one;
}

}  // namespace stele::base
