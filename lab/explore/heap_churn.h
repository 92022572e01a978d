// churn: blocks of many sizes made, replaced and destroyed in a few slots, with some transactions
// cancelled on purpose. What the other workloads do to structures this one does to the heap: slabs
// come and go, extents are split and joined, records outgrow their ring. For the explorer.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_heap_churn();

// A workload by name: churn, edges (edges.h), or any of workloads::make_workload. Errors:
// not_found, invalid_argument.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_explored_workload(
    std::string_view name, const workloads::parameters& p);

}  // namespace stele::explore
