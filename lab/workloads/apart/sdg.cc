// sdg on ordinary memory and in native runs.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/sdg_kind.h>

namespace stele::workloads {

constinit const apart_entry sdg_apart = {"sdg", make_sized<volatile_run, plain_run, sdg_kind>,
                                         make_native_sized<sdg_kind>};

}  // namespace stele::workloads
