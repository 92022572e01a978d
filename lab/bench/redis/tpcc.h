// tpcc on a Redis server with scripts of the caller's: a test plants a mistake in them.
#pragma once

#include <bench/redis/tpcc_scripts.h>
#include <bench/redis/workload.h>

namespace stele::bench::redis {

std::unique_ptr<redis_workload> make_tpcc_with(const workloads::parameters& p,
                                               tpcc_scripts scripts);

}  // namespace stele::bench::redis
