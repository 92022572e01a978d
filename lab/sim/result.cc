// Results as tables for people, as JSON and as CSV for programs.
#include <fmt/format.h>
#include <sim/config_file.h>
#include <sim/plugins.h>
#include <sim/result.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace stele::sim {
namespace {

using json = nlohmann::ordered_json;
using cells = std::vector<std::string>;

constexpr double exact_up_to =
    9007199254740992.0;  // 2^53: beyond it, not every whole number is a double

bool is_whole(double v) {
  return std::abs(v) < exact_up_to && v == std::floor(v);
}

// A whole number becomes an integer, so that counts look like counts. Infinity and NaN become null.
json json_number(double v) {
  if (!std::isfinite(v)) return nullptr;
  return is_whole(v) ? json(static_cast<std::int64_t>(v)) : json(v);
}

// A field with a comma or a quote is put in quotes (RFC 4180).
std::string csv_line(const cells& fields) {
  std::string line;
  for (const std::string& f : fields) {
    std::string text;
    for (const char c : f) text += c == '"' ? "\"\"" : std::string(1, c);
    line += line.empty() ? "" : ",";
    line += f.find_first_of(",\"\n") == f.npos ? f : '"' + text + '"';
  }
  return line + '\n';
}

// The shortest text that reads back as the same number; empty when there is none.
std::string csv_number(double v) {
  return std::isfinite(v) ? fmt::format("{}", v) : "";
}

// Never empty: an unnamed run is named by its design.
std::string label_of(const run_result& r) {
  return r.label.empty() ? r.machine.design.name : r.label;
}

double simulated_ns(const run_result& r) {
  return static_cast<double>(r.simulated) / 1000;
}

std::string separated(std::string digits) {
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  for (std::size_t at = end; at > begin + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

// Whole numbers in full; others with three decimals; numbers below 1 with four digits.
std::string text_of(double v) {
  if (!std::isfinite(v)) return "-";
  if (is_whole(v)) return separated(fmt::format("{:.0f}", v));
  return std::abs(v) < 1 ? fmt::format("{:.4g}", v) : separated(fmt::format("{:.3f}", v));
}

// NaN when the first value is 0.
double ratio(double value, double first) {
  return first == 0 ? std::nan("") : value / first;
}

std::string ratio_text(double r) {
  return std::isfinite(r) ? fmt::format("{:.3f}", r) : "-";
}

std::string section_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == path.npos ? std::string() : std::string(path.substr(0, dot));
}

std::string name_in_section(std::string_view path) {
  const std::size_t dot = path.find('.');
  return std::string(dot == path.npos ? path : path.substr(dot + 1));
}

// `sides` gives the alignment of the first columns; the other columns are aligned right. A row of
// one cell is a heading and does not widen its column.
std::string laid_out(const std::vector<cells>& rows, std::string_view sides) {
  std::vector<std::size_t> widths;
  for (const cells& row : rows)
    for (std::size_t i = 0; row.size() > 1 && i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = row.size() == 1 ? 0 : widths[i];
      const bool left = i < sides.size() && sides[i] == 'l';
      out += left ? fmt::format("{:<{}}  ", row[i], width) : fmt::format("{:>{}}  ", row[i], width);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string machine_line(const machine_config& m) {
  std::string lines = fmt::format("machine  {}{}\n", m.name.empty() ? "unnamed" : m.name,
                                  m.source.empty() ? "" : fmt::format(" ({})", m.source));
  for (const plugged_part& p : plugged_parts(m))
    lines += fmt::format("plug-in  {} {} of {}\n", p.what, p.name, p.plugin);
  return lines;
}

// Each quantity that any result has; sections stay together, in the order of their first
// appearance.
std::vector<quantity> union_of(std::span<const run_result> results) {
  std::vector<quantity> all;
  std::vector<std::string> sections;
  for (const run_result& r : results)
    for (const quantity& q : r.quantities) {
      const std::string section = section_of(q.path);
      if (std::ranges::find(sections, section) == sections.end()) sections.push_back(section);
      if (std::ranges::find(all, q.path, &quantity::path) == all.end()) all.push_back(q);
    }
  const auto place = [&](const quantity& q) {
    return std::ranges::find(sections, section_of(q.path)) - sections.begin();
  };
  std::ranges::stable_sort(all, {}, place);
  return all;
}

double value_at(const run_result& r, std::string_view path) {
  if (path == "simulated_ns") return simulated_ns(r);
  const quantity* q = find(r, path);
  return q == nullptr ? std::nan("") : q->value;
}

cells row_of(const quantity& q, std::span<const run_result> results) {
  cells row = {"  " + name_in_section(q.path), q.unit};
  const double first = value_at(results.front(), q.path);
  for (const run_result& r : results) {
    const double v = value_at(r, q.path);
    row.push_back(text_of(v));
    if (&r != &results.front()) row.push_back(ratio_text(ratio(v, first)));
  }
  return row;
}

std::vector<cells> rows_of(std::span<const run_result> results) {
  std::vector<cells> rows;
  std::string section;
  for (const quantity& q : union_of(results)) {
    if (section_of(q.path) != section) rows.push_back({section = section_of(q.path)});
    rows.push_back(row_of(q, results));
  }
  return rows;
}

json line_of(const time_series& line) {
  json samples = json::array();
  for (const std::vector<double>& sample : line.samples) {
    json row = json::array();
    for (const double v : sample) row.push_back(json_number(v));
    samples.push_back(std::move(row));
  }
  return {{"interval_ns", json_number(static_cast<double>(line.interval) / 1000)},
          {"names", line.names},
          {"samples", samples}};
}

json histograms_of(const run_result& r) {
  json out = json::object();
  for (const latency_histogram& h : r.histograms) {
    json classes = json::array();
    for (const latency_class& c : h.classes)
      classes.push_back({json_number(c.from_ns), json_number(c.below_ns), c.count});
    out[h.path] = std::move(classes);
  }
  return out;
}

json ratios_of(const run_result& r, const run_result& first) {
  json ratios = json::object();
  ratios["simulated_ns"] = json_number(ratio(simulated_ns(r), simulated_ns(first)));
  for (const quantity& q : r.quantities)
    ratios[q.path] = json_number(ratio(q.value, value_at(first, q.path)));
  return ratios;
}

}  // namespace

const quantity* find(const run_result& r, std::string_view path) {
  const auto found = std::ranges::find(r.quantities, path, &quantity::path);
  return found == r.quantities.end() ? nullptr : &*found;
}

std::string table_of(const run_result& r) {
  std::vector<cells> rows = rows_of({&r, 1});
  for (cells& row : rows)
    // with one result, the value stands before its unit
    if (row.size() > 1) std::swap(row[1], row[2]);
  return machine_line(r.machine) +
         fmt::format("{}   {}\ntape     {}\ntime     {} ns\n",
                     r.label.empty() ? "design" : "run   ", label_of(r), r.tape,
                     text_of(simulated_ns(r))) +
         laid_out(rows, "lrl");
}

std::string table_of_all(std::span<const run_result> results) {
  const run_result& first = results.front();
  cells heading = {"", ""};
  for (const run_result& r : results) {
    heading.push_back(r.label);
    if (&r != &first) heading.push_back("ratio");
  }
  std::vector<cells> rows = {heading, row_of({"simulated_ns", 0, "ns"}, results)};
  rows[1][0] = "time";
  for (cells& row : rows_of(results)) rows.push_back(std::move(row));
  return machine_line(first.machine) + fmt::format("tape     {}\n", first.tape) +
         laid_out(rows, "ll");
}

std::string table_of(const sweep& s, std::string_view path) {
  const std::size_t columns = s.columns.size();
  const bool alone = columns == 1;
  std::vector<cells> rows = {{s.key}};
  for (std::size_t c = 0; c < columns; ++c) {
    rows[0].push_back(s.columns[c]);
    if (alone || c > 0) rows[0].push_back("ratio");
  }
  for (std::size_t i = 0; i < s.runs.size(); ++i) {
    if (i % columns == 0) rows.push_back({s.values[i / columns]});
    const double v = value_at(s.runs[i], path),
                 first = value_at(s.runs[alone ? 0 : i - i % columns], path);
    rows.back().push_back(text_of(v));
    if (alone || i % columns != 0) rows.back().push_back(ratio_text(ratio(v, first)));
  }
  const quantity* q = s.runs.empty() ? nullptr : find(s.runs.front(), path);
  const std::string unit = path == "simulated_ns" ? "ns" : q == nullptr ? "" : q->unit;
  return fmt::format("{}{}\n", path, unit.empty() ? "" : ", " + unit) + laid_out(rows, "l");
}

std::string csv_of(std::span<const run_result> results) {
  std::string out = "run,quantity,value,unit\n";
  for (const run_result& r : results) {
    out += csv_line({label_of(r), "simulated_ns", csv_number(simulated_ns(r)), "ns"});
    for (const quantity& q : r.quantities)
      out += csv_line({label_of(r), q.path, csv_number(q.value), q.unit});
  }
  return out;
}

std::string csv_of_epochs(std::span<const run_result> results) {
  std::string out;
  for (const run_result& r : results) {
    if (out.empty() && !r.line.names.empty()) {
      cells heading = {"run"};
      heading.insert(heading.end(), r.line.names.begin(), r.line.names.end());
      out += csv_line(heading);
    }
    for (const std::vector<double>& sample : r.line.samples) {
      cells row = {label_of(r)};
      for (const double v : sample) row.push_back(csv_number(v));
      out += csv_line(row);
    }
  }
  return out;
}

std::string csv_of_histograms(std::span<const run_result> results) {
  std::string out = "run,quantity,from_ns,below_ns,count\n";
  for (const run_result& r : results)
    for (const latency_histogram& h : r.histograms)
      for (const latency_class& c : h.classes)
        out += csv_line({label_of(r), h.path, csv_number(c.from_ns), csv_number(c.below_ns),
                         std::to_string(c.count)});
  return out;
}

json json_of(const run_result& r) {
  json quantities = json::object();
  for (const quantity& q : r.quantities)
    quantities[q.path] = {{"value", json_number(q.value)}, {"unit", q.unit}};
  json out = json::object();
  if (!r.label.empty()) out["label"] = r.label;
  out["tape"] = r.tape;
  out["simulated_ns"] = json_number(simulated_ns(r));
  out["quantities"] = std::move(quantities);
  if (!r.histograms.empty()) out["histograms"] = histograms_of(r);
  if (r.line.interval != 0) out["timeline"] = line_of(r.line);
  for (const plugged_part& p : plugged_parts(r.machine))
    out["plugins"].push_back(
        {{"part", p.what}, {"name", p.name}, {"key", p.key}, {"file", p.plugin}});
  out["machine"] = json_of(r.machine);
  return out;
}

json json_of_all(std::span<const run_result> results) {
  json runs = json::array();
  for (const run_result& r : results) {
    runs.push_back(json_of(r));
    runs.back()["ratios"] = ratios_of(r, results.front());
  }
  return {{"runs", std::move(runs)}};
}

json json_of(const sweep& s) {
  json out = {{"key", s.key}, {"values", s.values}, {"columns", s.columns}};
  out["runs"] = json_of_all(s.runs)["runs"];
  return out;
}

}  // namespace stele::sim
