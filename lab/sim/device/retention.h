// The devices by name: the time of a write as a function of its retention. The lifetime of a
// device.
//
// Phase-change memory is written in iterations; a shorter retention needs fewer (Sun, Lu, Shu,
// "DP2", 2015, sections 2.2 and 3.4, after Liu et al., "NVM Duet", 2014). Data has one retention,
// log lines have another.
#pragma once

#include <sim/config.h>
#include <sim/kinds.h>
#include <sim/time.h>
#include <stele/error.h>

namespace stele::sim {

// The write's speed-up for a retention that the configuration lists. Another retention is an error
// that names the listed ones.
[[nodiscard]] result<double> speedup_for(const memory_config& c, double retention_s);

// The time from the row buffer to the cells, in picoseconds, for data and for log lines.
struct write_pulses {
  picoseconds data = 0, log = 0;
};
struct device_kind {
  std::string_view name;
  // Errors: invalid_argument, when the configuration does not fit the device.
  result<write_pulses> (*pulses)(const memory_config& c);
};
kinds<device_kind>& devices();
// Of the memory's technology. dram and stt-mram have one pulse, write_pulse_ns, for both, and their
// retentions are not checked. Errors: an unknown technology; those of the device.
[[nodiscard]] result<write_pulses> pulses_of(const memory_config& c);
// Data and logs may have pulses of their own: those of pcm, and of plug-ins.
bool tells_logs_from_data(const memory_config& c);

// Lifetime relative to writing everything at speed-up 1, with ideal wear levelling (DP2, equation
// 1): the log's share of the writes wears less by the speed-up.
constexpr double endurance(double log_portion, double log_speedup,
                           double data_speedup = 1) noexcept {
  return log_portion * log_speedup + (1 - log_portion) * data_speedup;
}
// The same if cells wear by iterations, of which a write needs fewer by its speed-up: a harmonic
// mean, which is less.
constexpr double endurance_by_iterations(double log_portion, double log_speedup,
                                         double data_speedup = 1) noexcept {
  return 1 / (log_portion / log_speedup + (1 - log_portion) / data_speedup);
}

}  // namespace stele::sim
