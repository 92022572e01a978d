// The registry's entries for the workloads: functions that make them. The value size given to a
// maker has been checked.
#pragma once

#include <workloads/workload.h>

namespace stele::workloads {

template <class Base>
using maker = std::unique_ptr<Base> (*)(const parameters&);

class native_run;
class native_space;
using native_maker = std::unique_ptr<native_run> (*)(const parameters&,
                                                     std::unique_ptr<native_space>);

struct workload_entry {
  std::string_view name;
  maker<workload> make;
  maker<volatile_run> make_volatile;
  native_maker make_native;                   // null: the workload has no native runs
  maker<workload> make_coalescing = nullptr;  // null: none in coalescing memory
  // Bytes; values have any size up to it. 0: only powers of two from 8 to 4096.
  std::size_t largest_value = 0;
};

// Errors: not_found; invalid_argument for the parameters. Native runs allow larger values.
[[nodiscard]] result<const workload_entry*> find_native_workload(std::string_view name,
                                                                 const parameters& p);

extern const workload_entry sps_entry, hash_entry, word_hash_entry, rbtree_entry, bptree_entry,
    kv_entry, sdg_entry, ssca2_entry, tpcc_entry, linkbench_entry, store_entry;
extern const workload_entry ycsb_entries[6];

}  // namespace stele::workloads
