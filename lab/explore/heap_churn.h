// churn: blocks of many sizes made, replaced and destroyed in a few slots; some transactions are
// cancelled on purpose. It exercises the heap as other workloads exercise structures: slabs come
// and go, extents are split and merged, records outgrow their ring. For the explorer.
//
// large: the same with the sizes of large slabs, and extents that take half of the pool, so that
// empty slabs are gathered. For a pool of 256 KiB: smaller ones make no large slab of several
// chunks.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_heap_churn();
std::unique_ptr<workloads::workload> make_large_churn();

}  // namespace stele::explore
