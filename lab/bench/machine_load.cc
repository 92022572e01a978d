// Reads the system's files, and takes away what this process did.
#include <bench/machine_load.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace stele::bench {
namespace {

constexpr double most_of_others = 0.5;  // a core
constexpr unsigned readings = 20;
constexpr std::chrono::milliseconds between_readings(5);

std::string text_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// In the ticks of /proc/stat.
double own_ticks() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    if (::getrusage(who, &used) == 0)
      seconds += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  }
  return seconds * static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// What is runnable changes from one moment to the next: the mean of some readings counts.
std::optional<load_sample> sample() {
  double runnable = 0;
  std::optional<load_sample> last;
  for (unsigned i = 0; i < readings; ++i) {
    if (i != 0) std::this_thread::sleep_for(between_readings);
    last = parse_load(text_of("/proc/loadavg"), text_of("/proc/stat"));
    if (!last) return std::nullopt;
    runnable += last->runnable;
  }
  last->runnable = runnable / readings;
  last->own = own_ticks();
  return last;
}

}  // namespace

bool machine_load::disturbed() const noexcept {
  return std::max(runnable, busy) > most_of_others;
}

std::optional<load_sample> parse_load(std::string_view loadavg, std::string_view stat) {
  std::istringstream averages{std::string(loadavg)}, ticks{std::string(stat)};
  load_sample s;
  double of_five = 0, of_fifteen = 0, threads = 0;
  char slash = 0;
  if (!(averages >> s.average >> of_five >> of_fifteen >> threads >> slash) || slash != '/')
    return std::nullopt;
  s.runnable = std::max(0.0, threads - 1);  // the one that reads this
  std::string name;
  std::array<double, 8> t{};  // user, nice, system, idle, iowait, irq, softirq, steal
  if (!(ticks >> name) || name != "cpu") return std::nullopt;
  for (double& one : t)
    if (!(ticks >> one)) return std::nullopt;
  s.busy = t[0] + t[1] + t[2] + t[5] + t[6];
  s.idle = t[3] + t[4];
  s.steal = t[7];
  return s;
}

machine_load load_between(const load_sample& before, const load_sample& after, unsigned cores) {
  machine_load l;
  l.average_before = before.average, l.average_after = after.average;
  l.runnable = (before.runnable + after.runnable) / 2 / std::max(cores, 1u);
  const double busy = after.busy - before.busy, steal = after.steal - before.steal,
               all = busy + steal + after.idle - before.idle;
  if (all <= 0) return l;
  l.busy = std::clamp((busy - (after.own - before.own)) / all, 0.0, 1.0);
  l.steal = steal / all;
  return l;
}

load_meter::load_meter() : before_(sample()) {}

std::optional<machine_load> load_meter::since() const {
  const auto after = sample();
  if (!before_ || !after) return std::nullopt;
  return load_between(*before_, *after, std::thread::hardware_concurrency());
}

std::string words_of(const machine_load& load) {
  return fmt::format(
      "other work: {:.2f} runnable threads a core, {:.0f} % of the cores' time, {:.1f} % stolen; "
      "load {:.2f} before, {:.2f} after{}",
      load.runnable, 100 * load.busy, 100 * load.steal, load.average_before, load.average_after,
      load.disturbed() ? ". DISTURBED: over half a core of each core; measure again what is timed"
                       : "");
}

nlohmann::json json_of(const machine_load& load) {
  return {{"load_before", load.average_before},
          {"load_after", load.average_after},
          {"runnable_a_core", load.runnable},
          {"busy_by_others", load.busy},
          {"steal", load.steal},
          {"disturbed", load.disturbed()},
          {"words", words_of(load)}};
}

}  // namespace stele::bench
