// The registry's entries for the workloads: functions that make them. The value size given to a
// maker has been checked. apart/entries.h has those of runs that are not on pools.
#pragma once

#include <workloads/workload.h>

namespace stele::workloads {

template <class Base>
using maker = std::unique_ptr<Base> (*)(const parameters&);

struct workload_entry {
  std::string_view name;
  maker<workload> make;
  maker<workload> make_coalescing = nullptr;  // null: none in coalescing memory
  // Bytes; values have any size up to it. 0: only powers of two, from 8 to 4096 on pools.
  std::size_t largest_value = 0;
};

// Errors: not_found; invalid_argument for the parameters. `largest_value` is the largest value size
// of a workload that takes powers of two.
[[nodiscard]] result<const workload_entry*> find_workload(std::string_view name,
                                                          const parameters& p,
                                                          std::size_t largest_value = 4096);

extern const workload_entry sps_entry, hash_entry, word_hash_entry, rbtree_entry, bptree_entry,
    kv_entry, sdg_entry, ssca2_entry, tpcc_entry, linkbench_entry, store_entry;
extern const workload_entry ycsb_entries[6];

}  // namespace stele::workloads
