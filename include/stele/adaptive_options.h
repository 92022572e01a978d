// Options of the mechanism adaptive, for engine_options::tuning.
//
//   stele::use_published();  // stele/published.h
//   stele::pool_options options{.create_size = 64 << 20, .engine = {.mechanism = "adaptive"}};
//   options.engine.tuning.of<stele::adaptive_options>().warm_up = 1'000;
//   auto pool = stele::pool<counter>::open("counter.stele", options);
//   if (pool) std::printf("runs as %s\n", std::string(pool->counters().mode).c_str());
//
// Its counter: mode_switches, switches of one log from one mode to the other.
#pragma once

#include <cstdint>

namespace stele {

// When the mechanism runs as blurred and when as vcbp (Lu, Shu and Sun, "Blurred Persistence"
// (2016), section 3.4).
struct adaptive_options {
  // Transactions measured in each mode before one is chosen; measured again when the workload
  // changes.
  std::uint64_t warm_up = 10'000;
  // 0: choose by measurement. Otherwise vcbp on media with a write latency above this, else
  // blurred.
  std::uint32_t threshold_ns = 0;
};

}  // namespace stele
