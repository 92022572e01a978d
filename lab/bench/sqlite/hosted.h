// Stele's row when SQLite is the host: a workload whose structure is a SQLite database in a pool,
// reached by the VFS of src/adapters/sqlite.
#pragma once

#include <workloads/workload.h>

namespace stele::bench::sql {

// The workload has the operations of the one of this name, and no model. The pool's policy is
// `external`. Errors: those of make_sql_workload.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_hosted(
    std::string_view name, const workloads::parameters& p);

}  // namespace stele::bench::sql
