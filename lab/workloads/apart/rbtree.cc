// rbtree on ordinary memory and in native runs.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/rbtree_kind.h>

namespace stele::workloads {

constinit const apart_entry rbtree_apart = {
    "rbtree", make_sized<volatile_run, plain_run, rbtree_kind>, make_native_sized<rbtree_kind>};

}  // namespace stele::workloads
