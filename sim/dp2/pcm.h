// The phase-change memory of Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual Persistency in
// Persistent Memory" (2015), sections 2.2 and 4, with the logs of a tape: 4 ranks of 8 banks, 32 writes in each bank's queue,
// 5.7 iterations of 250 ns a line, fewer where a log's retention may be shorter.
#pragma once

#include <sim/controller/controller.h>
#include <sim/device/presets.h>
#include <sim/feed/write_trace.h>

namespace stele::sim {

// `scheduler`: strict, rule1, rule2, rules, ideal. Wrong ones: bare_rule1 and bare_rule2, without their guards; bare, both;
// commit_first.
memory_config dp2_memory(const std::string& scheduler, double log_retention_s = 1e7);

// A memory that knows the logs of the tape's pool. Errors: invalid_argument (no such scheduler, no such retention).
result<std::unique_ptr<memory_system>> make_dp2_memory(event_queue& time, const memory_config& c, const media::tape_header& logs_of);

}  // namespace stele::sim
