// churn: blocks of many sizes made, replaced and destroyed in a few slots; some transactions are
// cancelled on purpose. It exercises the heap as other workloads exercise structures: slabs come
// and go, extents are split and merged, records outgrow their ring. For the explorer.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_heap_churn();

}  // namespace stele::explore
