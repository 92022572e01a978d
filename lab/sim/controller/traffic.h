// Generated loads, for measuring the simulator's speed and for testing a memory.
//
// random: requests to random lines. stream: requests to consecutive lines. Both keep `outstanding`
// requests unfinished. sparse: a request to a random line every `gap_ns`, even if earlier requests
// are not finished.
#pragma once

#include <sim/config.h>
#include <sim/controller/statistics.h>
#include <stele/error.h>

#include <cstddef>

namespace stele::sim {

enum class traffic_pattern : std::uint8_t { random, stream, sparse };

struct traffic_config {
  traffic_pattern pattern = traffic_pattern::random;
  std::uint64_t requests = 1'000'000;
  double write_share = 0.25;
  unsigned outstanding = 64;
  double gap_ns = 500 / 1.2;        // 500 cycles of DDR4-2400's clock
  unsigned writes_per_barrier = 0;  // 0: no barriers
  std::uint64_t seed = 1;
};

struct traffic_result {
  double wall_s = 0;
  double requests_per_second = 0;  // per second of wall time
  picoseconds simulated_ps = 0;
  std::size_t unfinished = 0;  // when no event was left
  memory_statistics done;
};

[[nodiscard]] result<traffic_result> run_traffic(const memory_config& c,
                                                 const traffic_config& load);

}  // namespace stele::sim
