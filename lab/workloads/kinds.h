// The registry's view of the workloads: their makers. The value size given has been checked.
#pragma once

#include <workloads/workload.h>

namespace stele::workloads {

template <class Base>
using maker = std::unique_ptr<Base> (*)(const parameters&);

class native_run;
class native_space;
using native_maker = std::unique_ptr<native_run> (*)(const parameters&, std::unique_ptr<native_space>);

struct kind {
  std::string_view name;
  maker<workload> make;
  maker<volatile_run> make_volatile;
  native_maker make_native;                   // null: the workload has no native runs
  maker<workload> make_coalescing = nullptr;  // null: nor any in coalescing memory
  std::size_t largest_value = 0;              // bytes; values are of any size up to it. 0: of a power of two from 8 to 4096
};

// Errors: not_found; invalid_argument for the parameters, of which native runs allow larger values.
[[nodiscard]] result<const kind*> find_native_kind(std::string_view name, const parameters& p);

extern const kind sps_kind, hash_kind, rbtree_kind, bptree_kind, kv_kind, sdg_kind, ssca2_kind, tpcc_kind, linkbench_kind, store_kind;
extern const kind ycsb_kinds[6];

}  // namespace stele::workloads
