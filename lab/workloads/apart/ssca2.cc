// ssca2 on ordinary memory and in native runs.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/ssca2_kind.h>

namespace stele::workloads {

constinit const apart_entry ssca2_apart = {"ssca2",
                                           make_sized<volatile_run, plain_run, ssca2::benchmark>,
                                           make_native_sized<ssca2::benchmark>};

}  // namespace stele::workloads
