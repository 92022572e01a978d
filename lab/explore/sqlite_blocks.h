// Workloads for the schedule explorer: what connections of SQLite do with the databases of a pool,
// block by block, without SQLite itself.
//
// Each operation is a connection of its own: it reads at a snapshot, takes the writers' locks,
// reserves, and commits. Databases grow, shrink, and store early what they append.
// `sqlite-blocks` has two databases; some operations change both. `sqlite-block` has one, which
// digest() reads beside commits and flushes.
#pragma once

#include <workloads/workload.h>

#include <memory>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_sqlite_blocks(unsigned databases);

}  // namespace stele::explore
