// The result of a run: the machine, quantities by path, and samples of some of them over simulated
// time.
//
// Paths are dotted ("l1.hits"); the part before the first dot is the section of the tables. The
// output is a function of the results alone, byte for byte: quantities keep the order in which they
// were added.
#pragma once

#include <sim/config.h>
#include <sim/time.h>

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

namespace stele::sim {

struct quantity {
  std::string path;
  double value = 0;
  std::string unit;  // "ns", "lines", "nJ"; none for bare counts and ratios
};

// The quantities of a run in each of its epochs. An epoch ends at interval, 2 * interval, ... after
// the warm-up; the last one ends with the run. A sample has one value for each name; the first is
// the epoch's end, in ns after the warm-up.
struct time_series {
  picoseconds interval = 0;  // 0: no time line
  std::vector<std::string> names;
  std::vector<std::vector<double>> samples;
};

// How many requests took how long: `count` of them, from `from_ns` on and below `below_ns`.
struct latency_class {
  double from_ns = 0, below_ns = 0;
  std::uint64_t count = 0;
};
struct latency_histogram {
  std::string path;  // of the quantity that is their mean
  std::vector<latency_class> classes;
};

struct run_result {
  machine_config machine;
  std::string tape;
  picoseconds simulated = 0;
  std::vector<quantity> quantities;
  std::vector<latency_histogram> histograms;
  time_series line;
  std::string label;  // tells this run from others beside it, such as the design; may be empty

  void add(std::string path, double value, std::string unit = {}) {
    quantities.push_back({std::move(path), value, std::move(unit)});
  }
};

// The quantity at a path; null when there is none.
const quantity* find(const run_result& r, std::string_view path);

// A table for people: sections, units, digits grouped by thousands.
std::string table_of(const run_result& r);
// Results side by side, with ratios to the first: all quantities that any result has. Precondition:
// at least one result.
std::string table_of_all(std::span<const run_result> results);

// `runs` has one result for each value and column, value after value. Cells are the quantity at
// `path` with its ratio to the first column of the row; with one column, to the first row.
struct sweep {
  std::string key;
  std::vector<std::string> values, columns;
  std::vector<run_result> runs;
};
std::string table_of(const sweep& s, std::string_view path);

// CSV for programs, one line for each: a quantity of a run; an epoch; a class of a histogram. Each
// line begins with the run's label. Epochs have the columns of the first run that has a time line.
std::string csv_of(std::span<const run_result> results);
std::string csv_of_epochs(std::span<const run_result> results);
std::string csv_of_histograms(std::span<const run_result> results);

// JSON for programs: machine, quantities by path, histograms, time line. For several results: the
// runs, each with its ratios to the first.
nlohmann::ordered_json json_of(const run_result& r);
nlohmann::ordered_json json_of_all(std::span<const run_result> results);
nlohmann::ordered_json json_of(const sweep& s);

}  // namespace stele::sim
