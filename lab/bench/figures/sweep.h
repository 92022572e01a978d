// A sweep: at each place of an axis the same entries run side by side. Each measure of their rows
// fills a panel.
//
// The entries of one place take turns within one comparison, so their numbers may be compared.
// Different places are measured one after the other.
#pragma once

#include <bench/compare.h>
#include <bench/figures/chart.h>

#include <functional>

namespace stele::bench {

struct sweep_options {
  std::string dir = ".";
  std::size_t spare_bytes = std::size_t{64} << 20;  // as in task
  std::uint64_t seed = 1;
  unsigned runs = 5;
  unsigned seeds = 5;    // of figures that are functions of the seed: those of over_seeds()
  double seconds = 0.5;  // for each entry in each run
  std::string charge;    // the charging rule of timed figures, by name; "": the publication's first
  std::size_t keys = std::size_t{1} << 18;        // of each structure
  std::size_t large_keys = std::size_t{1} << 15;  // where values may be large
  std::size_t warm_up_transactions = 10'000;  // table II: for each mode of the adaptive mechanism
  std::size_t short_warm_up = 10'000;         // figure 17: the same; over before the measurement
  // Log-structured evaluation: bytes requested in a phase (figure 9), bytes of log to recover (12),
  // bytes of keys and values (13).
  std::uint64_t phase_bytes = std::uint64_t{256} << 20, recovered_bytes = std::uint64_t{1} << 30,
                data_bytes = std::uint64_t{64} << 20;
  // DP2 evaluation: the traces for the simulated controller.
  std::uint64_t traced_operations = 4000, traced_keys = std::uint64_t{1} << 14;
  // Kiln's evaluation: the tapes of small and of large elements, and the bytes of the structure's
  // memory that are written before.
  std::uint64_t kiln_keys = std::uint64_t{1} << 20, kiln_transactions = 12'000;
  std::uint64_t kiln_large_keys = 1024, kiln_large_transactions = 64;
  std::size_t kiln_large_bytes = std::size_t{512} << 10, kiln_workloads = 6;
  std::uint64_t kiln_written_before = std::uint64_t{64} << 20;
  std::string host;  // of the architecture-aware evaluation's mixes: "", or as in task
  // Architecture-aware evaluation: records, rows of stock, and objects that are flushed or
  // checksummed.
  std::uint64_t archapt_keys = std::uint64_t{1} << 15, archapt_objects = 1'300'000;
  unsigned archapt_threads = 4;   // at most
  double archapt_seconds = 0.15;  // of figures 2, 7 and 8 without a host
  std::uint64_t archapt_crashes = 100,
                archapt_large_crashes = 10;  // per place of table IV; behind the largest cache
  std::size_t archapt_caches = 5;            // of table IV, at most
  // Of table IV: how many times the stores of a run fill its log.
  std::size_t archapt_log_periods = 8;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> cancelled = [] { return false; };
};

// Sets short runs on small structures: they show that everything works; their numbers are not for
// quoting.
void make_quick(sweep_options& o);

// Gives the task what all tasks of a figure have of the options: the pools' folder and spare room,
// and the seed.
void take_common(task& t, const sweep_options& o);

struct entry {
  std::string name, label, mechanism;
  std::size_t log_size_bytes = std::size_t{1} << 20;
  std::function<void(task& t)> own = [](task&) {
  };  // other changes to the task, applied after the sweep's `set`
};

struct measure {
  std::string panel, y;
  std::function<spread(const row& r, const task& t)> of;
};

struct sweep {
  task what;  // the task at each place, before `set`
  std::string x;
  std::vector<std::string> xs;
  std::function<void(task& t, std::size_t place)> set;
  std::vector<entry> entries;
  std::vector<measure> measures;
  bool bars = false;
  bool may_be_full = false;  // if a pool is full at a place, the place stays empty, with a note
};

measure transactions_per_s(std::string panel);
measure operations_per_s(std::string panel);
measure value_bytes_per_s(std::string panel);
measure aborted_percent(std::string panel);  // share of the attempts

// The seeds of a figure that is a function of the seed. They are so far apart that no two of them
// give threads of one run the same tape.
std::uint64_t seed_of(const sweep_options& o, unsigned which);

// Measures a figure with each of its seeds. Each point of the chart has a run for each seed; notes
// are those of the first seed. When interrupted, the chart has the seeds so far. Errors: those of
// `measure`.
[[nodiscard]] result<> over_seeds(const sweep_options& o, chart& into,
                                  result<> (*measure)(const sweep_options& o, chart& c));

// Adds the sweep's panels to the chart. When interrupted, the chart is marked incomplete and holds
// the results so far. Errors: those of the contenders.
[[nodiscard]] result<> run(const sweep& s, const sweep_options& o, chart& into);

}  // namespace stele::bench
