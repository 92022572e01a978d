// Whether what a path is on is lost with the power, as far as a process can see.
//
// Followed: memory file systems, overlays (their upper layer, and the mount option volatile, which
// disables syncs), loop devices, partitions, device mapper and RAID, down to memory. Not seen, and
// so taken for persistent: layers outside this process's mount namespace, network and host file
// systems, and caches that devices do not report.
#pragma once

#include <string>

namespace stele::storage {

// False also for what cannot be examined.
bool is_volatile(const std::string& path);

}  // namespace stele::storage
