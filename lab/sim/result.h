// What a run gives: the machine that it was, quantities by path, and how some of them went over
// simulated time.
//
// Paths are dotted ("l1.hits"); the part before the first dot is the section under which tables
// show them. Everything printed is a function of the results alone, to the byte: quantities keep
// the order in which they were added.
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
  picoseconds interval = 0;  // 0: none was asked for
  std::vector<std::string> names;
  std::vector<std::vector<double>> samples;
};

struct run_result {
  machine_config machine;
  std::string tape;
  picoseconds simulated = 0;
  std::vector<quantity> quantities;
  time_series line;
  std::string label;  // what tells it from others beside it, such as its design; may be empty

  void add(std::string path, double value, std::string unit = {}) {
    quantities.push_back({std::move(path), value, std::move(unit)});
  }
};

// The value at a path; `simulated_ns` is one too. Null when there is none.
const quantity* find(const run_result& r, std::string_view path);

// For people: sections, units, thousands separated.
std::string table_of(const run_result& r);
// Side by side, with ratios to the first: of all quantities that any has. At least one result.
std::string table_of_all(std::span<const run_result> results);

// `runs` has one result for each value and column, value after value. Cells are the quantity at
// `path` with its ratio to the first column of the row; with one column, to the first row.
struct sweep {
  std::string key;
  std::vector<std::string> values, columns;
  std::vector<run_result> runs;
};
std::string table_of(const sweep& s, std::string_view path);

// For programs: machine, quantities by path, time line. Of several: the runs, each with ratios to
// the first.
nlohmann::ordered_json json_of(const run_result& r);
nlohmann::ordered_json json_of_all(std::span<const run_result> results);
nlohmann::ordered_json json_of(const sweep& s);

}  // namespace stele::sim
