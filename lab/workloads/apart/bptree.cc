// bptree on ordinary memory and in native runs.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/bptree_kind.h>

namespace stele::workloads {

constinit const apart_entry bptree_apart = {
    "bptree", make_sized<volatile_run, plain_run, bptree_kind>, make_native_sized<bptree_kind>};

}  // namespace stele::workloads
