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

namespace {

result<write_pulses> fixed_pulses(const memory_config& c) {
  return write_pulses{from_ns(c.write_pulse_ns), from_ns(c.write_pulse_ns)};
}

result<write_pulses> pulses_by_retention(const memory_config& c) {
  const auto data = speedup_for(c, c.data_retention_s), log = speedup_for(c, c.log_retention_s);
  if (!data) return std::unexpected(data.error());
  if (!log) return std::unexpected(log.error());
  if (!(*data > 0 && *log > 0 && c.iterations > 0 && c.iteration_ns > 0))
    return base::fail(
        errc::invalid_argument,
        "memory: iterations, iteration_ns and speed-ups of retentions must be above 0");
  const double whole_ns = c.iterations * c.iteration_ns;
  for (const double speedup : {*data, *log})
    if (!(whole_ns / speedup < 1e9))
      return base::fail(errc::invalid_argument,
                        "memory: iterations * iteration_ns / speedup is a second or more; a write "
                        "takes less, so give fewer or shorter iterations");
  return write_pulses{from_ns(whole_ns / *data), from_ns(whole_ns / *log)};
}

constexpr device_kind own[] = {
    {"dram", fixed_pulses}, {"stt-mram", fixed_pulses}, {"pcm", pulses_by_retention}};

}  // namespace

kinds<device_kind>& devices() {
  static kinds<device_kind> all(own);
  return all;
}

result<write_pulses> pulses_of(const memory_config& c) {
  if (const device_kind* k = devices().find(c.technology)) return k->pulses(c);
  return base::fail(errc::invalid_argument, "memory: there is no technology \"" + c.technology +
                                                "\"; use one of " + devices().listed());
}

bool tells_logs_from_data(const memory_config& c) {
  const device_kind* k = devices().find(c.technology);
  return k != nullptr && k->pulses != fixed_pulses;
}

}  // namespace stele::sim
