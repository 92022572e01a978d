// linkbench on ordinary memory.
#include <workloads/apart/entries.h>
#include <workloads/apart/plain_run.h>
#include <workloads/linkbench_kind.h>

namespace stele::workloads {

constinit const apart_entry linkbench_apart = {"linkbench",
                                               linkbench::make<volatile_run, plain_run>};

}  // namespace stele::workloads
