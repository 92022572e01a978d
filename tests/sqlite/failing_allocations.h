// Memory that is refused: ending_test.cc replaces operator new of this program.
#pragma once

namespace stele::testing {

// The allocation of this thread that fails; below 0: none.
extern thread_local long allocations_until_failure;

// Calls `call` while its nth allocation fails, counted from 0. Returns whether it made as many.
template <class Call>
bool without_allocation(long nth, Call&& call) {
  allocations_until_failure = nth;
  call();
  const bool struck = allocations_until_failure < 0;
  allocations_until_failure = -1;
  return struck;
}

}  // namespace stele::testing
