// The C handle of a pool: the pool, and the strings that its functions return.
#pragma once

#include <capi/shim.h>

struct stele_pool {
  stele::detail::pool_handle handle;
  std::string durability, mechanism;
};
