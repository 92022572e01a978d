// What stele_commit_loop counts of SQLite: updates of one row through the VFS.
#pragma once

#include <workloads/workload.h>

namespace stele::bench {

// A table with a row of 8 bytes for each key; an operation updates one of them, in a transaction
// of its own. It has no volatile model and no digest.
[[nodiscard]] std::unique_ptr<workloads::workload> make_row_updates(const workloads::parameters& p);

}  // namespace stele::bench
