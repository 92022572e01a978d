// sdg on pools.
#include <workloads/entries.h>
#include <workloads/sdg_kind.h>

namespace stele::workloads {

constinit const workload_entry sdg_entry = {"sdg", make_sized<workload, pool_run, sdg_kind>};

}  // namespace stele::workloads
