// A sweep: at each place of an axis the same entries run side by side, and each measure of their
// rows fills a panel.
//
// The entries of one place take turns within one comparison, so a place's numbers may be compared
// with each other; those of different places were measured one after the other.
#pragma once

#include <bench/figures/chart.h>

#include <functional>

namespace stele::bench {

struct sweep_options {
  std::string dir = ".";
  std::uint64_t seed = 1;
  unsigned runs = 5;
  double seconds = 0.5;                           // of each entry in each run
  std::size_t keys = std::size_t{1} << 18;        // of each structure
  std::size_t large_keys = std::size_t{1} << 15;  // where values may be large
  std::size_t warm_up_transactions = 10'000;  // table II: of each mode of the adaptive mechanism
  std::size_t short_warm_up = 10'000;         // figure 17: the same, to be over when it is measured
  // Of the log-structured evaluation: requested in a phase (figure 9), of log to recover (12), of
  // keys and values (13).
  std::uint64_t phase_bytes = std::uint64_t{256} << 20, recovered_bytes = std::uint64_t{1} << 30,
                data_bytes = std::uint64_t{64} << 20;
  // Of the DP2 evaluation: what the simulated controller is given.
  std::uint64_t traced_operations = 4000, traced_keys = std::uint64_t{1} << 14;
  // Of Kiln's evaluation: the tapes of small and of large elements, and how much of the structure's
  // memory is written before.
  std::uint64_t kiln_keys = std::uint64_t{1} << 20, kiln_transactions = 12'000;
  std::uint64_t kiln_large_keys = 1024, kiln_large_transactions = 64;
  std::size_t kiln_large_bytes = std::size_t{512} << 10, kiln_workloads = 6;
  std::uint64_t kiln_written_before = std::uint64_t{64} << 20;
  // Of the architecture-aware evaluation: records, rows of stock, and objects that are flushed or
  // summed up.
  std::uint64_t archapt_keys = std::uint64_t{1} << 16, archapt_objects = 1'300'000;
  unsigned archapt_threads = 4;  // at the most
  std::uint64_t archapt_crashes = 1000,
                archapt_large_crashes = 10;  // for each place of table IV; behind the largest cache
  std::size_t archapt_caches = 5;            // of table IV, at the most
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> cancelled = [] { return false; };
};

// Short runs on small structures: to see that everything works, not to quote.
void make_quick(sweep_options& o);

struct entry {
  std::string name, label, mechanism;
  std::size_t log_size_bytes = std::size_t{1} << 20;
  std::function<void(task& t)> own = [](task&) {
  };  // what else differs from the others' task, after the sweep's `set`
};

struct measure {
  std::string panel, y;
  std::function<spread(const row& r, const task& t)> of;
};

struct sweep {
  task what;  // at each place, before `set`
  std::string x;
  std::vector<std::string> xs;
  std::function<void(task& t, std::size_t place)> set;
  std::vector<entry> entries;
  std::vector<measure> measures;
  bool bars = false;
  bool may_be_full = false;  // a place where a pool has no room is left empty, and a note says so
};

measure transactions_per_s(std::string panel);
measure operations_per_s(std::string panel);
measure value_bytes_per_s(std::string panel);
measure aborted_percent(std::string panel);  // of the attempts

// Adds the sweep's panels to the chart. When interrupted, the chart is marked incomplete and holds
// what was measured. Errors: those of the contenders.
[[nodiscard]] result<> run(const sweep& s, const sweep_options& o, chart& into);

}  // namespace stele::bench
