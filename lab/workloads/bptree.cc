// bptree on pools.
#include <workloads/bptree_kind.h>
#include <workloads/entries.h>

namespace stele::workloads {

constinit const workload_entry bptree_entry = {"bptree",
                                               make_sized<workload, pool_run, bptree_kind>};

}  // namespace stele::workloads
