// hash and word_hash on pools.
#include <workloads/entries.h>
#include <workloads/hash_kind.h>

namespace stele::workloads {

constinit const workload_entry hash_entry = {"hash", make_sized<workload, pool_run, hash_kind>,
                                             make_sized<workload, coalescing_run, hash_kind>};

constinit const workload_entry word_hash_entry = {"word_hash",
                                                  make_sized<workload, pool_run, word_hash_kind>};

}  // namespace stele::workloads
