// edges: what bugs hid behind that no other workload has. Long runs of words that do not spill,
// values whose halves are zero, a block made and destroyed in one commit, aborts of more stores
// than a log has blocks, extents of three chunks and more whose words go over regions of a
// log-structured home. For the explorer; it needs a pool of 128 KiB.
#pragma once

#include <workloads/workload.h>

namespace stele::explore {

std::unique_ptr<workloads::workload> make_edges();

}  // namespace stele::explore
