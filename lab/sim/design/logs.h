// Software logs on the simulated machine: rlog, ulog (the log goes to memory) and crlog, culog (to
// the nonvolatile cache).
//
// After Zhao, Li, Yoon, Xie and Jouppi, "Kiln" (2013), sections 5.2 and 6.2: logs of words, an
// entry is address and value; rlog and ulog flush with clflush, which drops lines, and fence; crlog
// and culog use Kiln's controllers to send log lines to the nonvolatile cache. The instructions
// that make log entries are not counted there and not here; their stores are. Whether a log line is
// read from memory before its first store is not stated: design.log_lines_fetched.
#pragma once

#include <sim/design/design.h>

namespace stele::sim {

// Log addresses, from here on, apart from any data.
inline constexpr std::uint64_t logs_at = std::uint64_t{1} << 38;

std::unique_ptr<design> make_redo_log(const design_context& where, bool in_cache);
std::unique_ptr<design> make_undo_log(const design_context& where, bool in_cache);

}  // namespace stele::sim
