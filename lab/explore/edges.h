// edges: a workload of the cases where bugs hid that no other workload showed. Long runs of words
// that do not spill; values with zero halves; a block made and destroyed in one commit; aborts of
// more stores than a log has blocks; extents of three or more chunks whose words span regions of a
// log-structured home. For the explorer; it needs a pool of 128 KiB.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_edges();

}  // namespace stele::explore
