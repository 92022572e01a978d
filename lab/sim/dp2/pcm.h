// The phase-change memory of Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential
// and Dual Persistency in Persistent Memory" (2015), sections 2.2 and 4, with the log ranges of a
// tape: 4 ranks of 8 banks, 32 writes in each bank's queue, 5.7 iterations of 250 ns for a line,
// fewer where a log's retention may be shorter.
#pragma once

#include <sim/config.h>
#include <sim/controller/controller.h>
#include <sim/feed/write_trace.h>

namespace stele::sim {

// The paper models writes only, and no bus for them. Reads here take the 55 ns of a row activation
// and the 12.5 ns of a column access of Lee, Ipek, Mutlu, Burger, "Architecting Phase Change Memory
// as a Scalable DRAM Alternative", 2009, and occupy the channel for 5 ns. A row is a line, closed
// after each access. Consecutive lines go to different banks, so a log is spread over all banks;
// banks are hashed, so the commit lines of different logs are spread too.
// configs/dp2.toml has the same values. `scheduler`: strict, rule1, rule2, rules, ideal. Wrong on
// purpose: bare_rule1 and bare_rule2 (without their guards), bare (both), commit_first.
memory_config dp2_memory(const std::string& scheduler, double log_retention_s = 1e7);

// A memory with the log ranges of the tape's pool. Errors: invalid_argument (unknown scheduler or
// retention).
[[nodiscard]] result<std::unique_ptr<memory_system>> make_dp2_memory(
    event_queue& time, const memory_config& c, const media::tape_header& logs_of);

}  // namespace stele::sim
