// rbtree on pools.
#include <workloads/entries.h>
#include <workloads/rbtree_kind.h>

namespace stele::workloads {

constinit const workload_entry rbtree_entry = {"rbtree",
                                               make_sized<workload, pool_run, rbtree_kind>,
                                               make_sized<workload, coalescing_run, rbtree_kind>};

}  // namespace stele::workloads
