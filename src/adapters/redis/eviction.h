// Keys that go so that a full pool has room, by the server's `maxmemory-policy`. A server with
// `maxmemory` evicts by itself; this is for a pool that cannot grow before that is reached.
#pragma once

#include "commands.h"

namespace stele::redis {

// Whether the policy lets keys go, and this server may choose them: a replica's master does.
bool may_evict(const call& c);
// Removes keys until about so many bytes will be free when the unit has ended. Replicas and the AOF
// are told. Returns how many went; 0: the policy allows none of those that are left.
std::uint64_t evict(const call& c, std::size_t bytes);

}  // namespace stele::redis
