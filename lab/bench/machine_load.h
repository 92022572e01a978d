// How much other work a machine had while something was measured: from /proc/loadavg and
// /proc/stat before and after. This process and the children that it waited for are not counted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace stele::bench {

// At a moment.
struct load_sample {
  double average = 0;                    // of one minute, all threads of the machine
  double runnable = 0;                   // threads of others that run or want to
  double busy = 0, idle = 0, steal = 0;  // ticks of all cores since the start
  double own = 0;                        // of `busy`: this process'
};

// Between two samples. Shares are of the time of all cores.
struct machine_load {
  double average_before = 0, average_after = 0;
  double runnable = 0;  // threads of others a core, mean of both samples
  double busy = 0;      // the share that others ran
  double steal = 0;     // the share that another machine had

  // More than half a core's worth of others on each core: what was timed meanwhile says little.
  bool disturbed() const noexcept;
};

// Nullopt: the texts are not those of Linux' files. `runnable` has the calling thread's own one.
std::optional<load_sample> parse_load(std::string_view loadavg, std::string_view stat);
machine_load load_between(const load_sample& before, const load_sample& after, unsigned cores);

// Samples the machine when made, for a tenth of a second, and again when asked. No other thread of
// this process runs meanwhile.
class load_meter {
 public:
  load_meter();
  std::optional<machine_load> since() const;  // nullopt: the system does not tell

 private:
  std::optional<load_sample> before_;
};

// One line, for a table or a picture.
std::string words_of(const machine_load& load);
nlohmann::json json_of(const machine_load& load);

}  // namespace stele::bench
