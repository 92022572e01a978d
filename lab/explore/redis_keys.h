// The workload `redis` for the explorer: what a Redis server does with the keys of its pool, unit
// by unit, without Redis itself.
//
// Each transaction is a unit on two databases: strings and hashes are set, renamed, removed and
// given expiry times, databases are flushed and swapped. Some units begin and end beside a child
// that saves, which must find what was there at its begin. Items of no database are freed between
// units.
#pragma once

#include <workloads/workload.h>

#include <memory>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_redis_keys(const workloads::parameters& p);

}  // namespace stele::explore
