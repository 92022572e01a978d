// rings: a workload whose records are as long as a log, up to two lines less or more; likewise as
// half a log, where truncations begin. For the explorer; it needs logs of at most 4 KiB.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_ring_records();

}  // namespace stele::explore
