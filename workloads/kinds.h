// The registry's view of the workloads: two makers each. The value size given has been checked.
#pragma once

#include <workloads/workload.h>

namespace stele::workloads {

template <class Base>
using maker = std::unique_ptr<Base> (*)(const parameters&);

struct kind {
  std::string_view name;
  maker<workload> make;
  maker<volatile_run> make_volatile;
};

extern const kind sps_kind, hash_kind, rbtree_kind, bptree_kind, kv_kind;

}  // namespace stele::workloads
