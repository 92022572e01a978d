// How long a write takes for how long it must last, and how long the device lives.
//
// Writes of phase-change memory go in iterations; the shorter the retention asked for, the fewer
// (Sun, Lu, Shu, "DP2", 2015, sections 2.2 and 3.4, after Liu et al., "NVM Duet", 2014). Data gets
// one retention, a log's lines another.
#pragma once

#include <sim/config.h>
#include <sim/time.h>
#include <stele/error.h>

namespace stele::sim {

// The write's speed-up for a retention that the configuration lists; an error that names those it
// lists, for another.
[[nodiscard]] result<double> speedup_for(const memory_config& c, double retention_s);

// From the row buffer to the cells, in picoseconds, of data and of a log's lines. Technologies
// other than pcm have one pulse, write_pulse_ns, for both, and retentions of their own are not
// asked of them.
struct write_pulses {
  picoseconds data = 0, log = 0;
};
[[nodiscard]] result<write_pulses> pulses_of(const memory_config& c);

// Lifetime relative to writing everything at the longest retention, wear levelled ideally (DP2,
// equation 1): the log's share of the writes wears less by the speed-up.
constexpr double endurance(double log_portion, double log_speedup) noexcept {
  return log_portion * log_speedup + (1 - log_portion);
}

}  // namespace stele::sim
