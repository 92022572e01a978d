// Evicts keys of a full pool by the server's `maxmemory-policy`. Redis evicts by itself when it
// reaches `maxmemory`; this is for a pool that cannot grow that far.
#pragma once

#include "commands.h"

namespace stele::redis {

// Whether the policy evicts, and this server may: a replica leaves it to its master.
bool may_evict(const call& c);
// Removes keys until about this many bytes will be free when the unit has ended. Replicated as DEL.
// Returns how many; 0: the policy allows none of those that are left.
std::uint64_t evict(const call& c, std::size_t bytes);

}  // namespace stele::redis
