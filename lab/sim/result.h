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

// Samples at interval, 2 * interval, ...; each has one value for each name.
struct time_series {
  picoseconds interval = 0;  // 0: no time line
  std::vector<std::string> names;
  std::vector<std::vector<double>> samples;
};

struct run_result {
  machine_config machine;
  std::string tape;
  picoseconds simulated = 0;
  std::vector<quantity> quantities;
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

// JSON for programs: machine, quantities by path, time line. For several results: the runs, each
// with its ratios to the first.
nlohmann::ordered_json json_of(const run_result& r);
nlohmann::ordered_json json_of_all(std::span<const run_result> results);
nlohmann::ordered_json json_of(const sweep& s);

}  // namespace stele::sim
