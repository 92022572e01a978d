// The workloads that a plan can name. The function is defined by each library
// that has workloads: stele_trials (heap_churn.cc), and stele::testing, in
// which only users' structures are explored.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

// A workload by name: churn, large (heap_churn.h), edges (edges.h), rings (ring_records.h), stores
// (named_stores.h), redis (redis_keys.h), where this build has SQLite sqlite and sqlite-512
// (sqlite_rows.h), sqlite-block and sqlite-blocks (sqlite_blocks.h), or any of
// workloads::make_workload. Errors: not_found, invalid_argument.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_explored_workload(
    std::string_view name, const workloads::parameters& p);

}  // namespace stele::explore
