// stores: a key-value store without a name and two named ones in a pool of stele::kv. Items are
// put, some of them to expire, erased, moved from store to store in one transaction; expired items
// are removed, and stores are dropped, whose space is freed in later transactions. For the
// explorer.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_named_stores(const workloads::parameters& p);

}  // namespace stele::explore
