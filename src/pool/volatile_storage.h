// Whether what lies behind a path is lost with the power, as far as a process can see.
//
// Looked through: memory file systems, overlays (their upper layer, and the mount option volatile,
// which makes a sync do nothing), loop devices, partitions, device mapper and RAID, down to memory.
// Not seen, so taken for storage that stays: layers outside this process's mount namespace, file
// systems of a network or a host, caches that devices lie about.
#pragma once

#include <string>

namespace stele::storage {

// False also for what cannot be looked at.
bool is_volatile(const std::string& path);

}  // namespace stele::storage
