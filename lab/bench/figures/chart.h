// A figure of a published evaluation, measured here: panels of series over one axis, and what the
// text states beside it.
//
// A chart holds numbers and their names, no knowledge of how they came about. Numbers that the
// publication states are kept apart from measured ones, as series marked `stated` and as the
// claims' own column, and are labelled so in every output.
#pragma once

#include <bench/compare.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

struct series {
  std::string name;                           // what claims know it by
  std::string label;                          // what readers see
  bool stated = false;                        // the publication's numbers
  std::vector<std::optional<spread>> points;  // one for each x of the panel
};

struct panel {
  std::string name, x, y;  // y with its unit
  std::vector<std::string> xs;
  std::vector<series> lines;
  bool bars = false;  // xs are names, not quantities

  const series* find(std::string_view series_name) const noexcept;
};

// A number or a word of the text, and what was measured for it.
struct claim {
  std::string what, stated, unit;
  std::vector<double> measured;  // one for each place that the claim speaks of; empty: not measured
};

struct chart {
  std::string name;  // also of its files
  std::string title, source, setting;
  std::vector<panel> panels;
  std::vector<claim> claims;
  std::vector<std::string> notes;
  bool complete = true;  // false: the measurement was interrupted
};

// Each point of `p` over the median of series `baseline` at the same x; points without one are left
// out.
panel relative_to(const panel& p, const std::string& baseline, std::string name);
// Series become places on the axis and the other way round; `x` names the new axis.
panel transposed(const panel& p, std::string x);

// What was measured for a claim, in words: one value, or least, greatest and mean.
std::string summary_of(const claim& c);

std::string table_of(const chart& c);
nlohmann::json json_of(const chart& c);

}  // namespace stele::bench
