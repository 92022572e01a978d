// Software logs on the simulated machine: rlog and ulog (the log goes to memory), crlog and culog
// (the log goes to the nonvolatile cache).
//
// After Zhao, Li, Yoon, Xie and Jouppi, "Kiln" (2013), sections 5.2 and 6.2. Logs of words: an
// entry is an address and a value. rlog and ulog flush with clflush, which drops lines, and fence.
// crlog and culog use Kiln's controllers to send log lines to the nonvolatile cache. The paper does
// not count the instructions that create log entries, nor does this model; it counts their stores.
// The paper does not state whether a log line is read from memory before its first store: see
// design.log_lines_fetched.
#pragma once

#include <sim/design/design.h>

namespace stele::sim {

// Addresses of logs begin here, above all data.
inline constexpr std::uint64_t logs_at = std::uint64_t{1} << 38;

std::unique_ptr<design> make_redo_log(const design_context& where, bool in_cache);
std::unique_ptr<design> make_undo_log(const design_context& where, bool in_cache);

}  // namespace stele::sim
