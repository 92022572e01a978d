// Computes write pulses from retentions.
#include <base/check.h>
#include <sim/device/retention.h>

#include <sstream>

namespace stele::sim {
namespace {

std::string listed(const memory_config& c) {
  std::ostringstream text;
  for (const retention_row& r : c.retention)
    text << (&r == c.retention.data() ? "" : ", ") << r.retention_s;
  return c.retention.empty() ? "none: give the retention table" : text.str();
}

}  // namespace

result<double> speedup_for(const memory_config& c, double retention_s) {
  for (const retention_row& r : c.retention)
    if (r.retention_s == retention_s) return r.speedup;
  std::ostringstream asked;
  asked << retention_s;
  return base::fail(errc::invalid_argument, "memory: no speed-up is known for a retention of " +
                                                asked.str() + " s; known are (s) " + listed(c));
}

result<write_pulses> pulses_of(const memory_config& c) {
  if (c.technology != "pcm")
    return write_pulses{from_ns(c.write_pulse_ns), from_ns(c.write_pulse_ns)};
  const auto data = speedup_for(c, c.data_retention_s), log = speedup_for(c, c.log_retention_s);
  if (!data) return std::unexpected(data.error());
  if (!log) return std::unexpected(log.error());
  if (!(*data > 0 && *log > 0 && c.iterations > 0 && c.iteration_ns > 0))
    return base::fail(
        errc::invalid_argument,
        "memory: iterations, iteration_ns and speed-ups of retentions must be above 0");
  const double whole_ns = c.iterations * c.iteration_ns;
  return write_pulses{from_ns(whole_ns / *data), from_ns(whole_ns / *log)};
}

}  // namespace stele::sim
