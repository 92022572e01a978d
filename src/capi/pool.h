// The C handle of a pool: the pool, and the strings that its functions return.
#pragma once

#include <capi/shim.h>

struct stele_pool {
  stele::detail::pool_handle handle;
  std::string mechanism;
};

namespace stele::capi {

// Returns size. Throws failure: invalid_argument, if the place is not in the pool of the running
// transaction.
std::size_t check_range(const void* place, std::size_t size, const char* what);

}  // namespace stele::capi
