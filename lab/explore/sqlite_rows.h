// Workloads for the explorer: SQLite on the recorded pool, through the VFS of src/adapters/sqlite.
//
// Two databases of one pool are attached to one handle; some transactions change both. Databases
// grow, shrink (auto_vacuum) and are vacuumed; large transactions spill SQLite's cache. The digest
// is that of all rows, after PRAGMA integrity_check. `sqlite` has pages of 4096 bytes, `sqlite-512`
// of 512. A commit that may be ordered is one under PRAGMA synchronous=NORMAL.
#pragma once

#include <workloads/workload.h>

#include <memory>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_sqlite_rows(const workloads::parameters& p,
                                                      unsigned page_size);

}  // namespace stele::explore
