// What the C handle of a pool holds: the pool, and the texts that it hands out.
#pragma once

#include <capi/shim.h>

struct stele_pool {
  stele::detail::pool_handle handle;
  std::string durability, mechanism;
};
