// The registry's entries for runs that are not on pools: functions that make them, as in
// workloads/entries.h.
#pragma once

#include <workloads/apart/volatile.h>
#include <workloads/entries.h>

namespace stele::workloads {

class native_run;
class native_space;
using native_maker = std::unique_ptr<native_run> (*)(const parameters&,
                                                     std::unique_ptr<native_space>);

struct apart_entry {
  std::string_view name;
  maker<volatile_run> make_volatile;
  native_maker make_native = nullptr;  // null: the workload has no native runs
};

// An entry with native runs, which allow larger values. Errors: those of find_workload.
[[nodiscard]] result<const apart_entry*> find_native_workload(std::string_view name,
                                                              const parameters& p);

extern const apart_entry sps_apart, hash_apart, word_hash_apart, rbtree_apart, bptree_apart,
    kv_apart, sdg_apart, ssca2_apart, tpcc_apart, linkbench_apart, store_apart;
extern const apart_entry ycsb_apart[6];

}  // namespace stele::workloads
