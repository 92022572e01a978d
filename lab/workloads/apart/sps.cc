// sps on ordinary memory and in native runs.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/sps_kind.h>

namespace stele::workloads {

constinit const apart_entry sps_apart = {"sps", make_sized<volatile_run, plain_run, sps_kind>,
                                         make_native_sized<sps_kind>};

}  // namespace stele::workloads
