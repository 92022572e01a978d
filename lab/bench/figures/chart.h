// A figure of a published evaluation, measured here: panels of series over one axis, and the
// statements of the text beside it.
//
// A chart holds numbers and their names, not how they were measured. Numbers that the publication
// states are kept apart from measured ones, as series marked `stated` and in a separate column of
// the claims, and are labelled so in every output.
#pragma once

#include <bench/machine_load.h>
#include <bench/spread.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

struct series {
  std::string name;                           // the name that claims use
  std::string label;                          // the name that readers see
  bool stated = false;                        // numbers of the publication
  std::vector<std::optional<spread>> points;  // one for each x of the panel
};

struct panel {
  std::string name, x, y;  // y has its unit
  std::vector<std::string> xs;
  std::vector<series> lines;
  bool bars = false;    // xs are names, not quantities
  bool ratios = false;  // its table has intervals; JSON and picture of each panel have

  const series* find(std::string_view series_name) const noexcept;
};

// A number or a word of the text, and the values measured for it.
struct claim {
  std::string what, stated, unit;
  std::vector<double> measured;          // one for each place of the claim; empty: not measured
  std::optional<interval> of_mean = {};  // of the mean of `measured`; nullopt: unknown
};

// A claim of a publication, and what was measured for it: verdicts.h.
struct measured_reading {
  std::string rule;  // empty: by default
  double value = 0;
  std::optional<interval> within;
  bool disturbed = false;  // it was timed while others kept the machine busy
};

struct verdict {
  std::string paper, figure, sentence, unit;
  interval expected;                       // its ends may be infinite
  std::vector<measured_reading> readings;  // those that were measured

  bool meets(const measured_reading& r) const noexcept;
  // The one that agrees, else that by default, else any; null: not measured.
  const measured_reading* deciding() const noexcept;
  // "agrees", "holds under RULE", "does not hold", "not measured"; with ", on a busy machine".
  std::string words() const;
};

struct chart {
  std::string name;  // also the name of its files
  std::string title, source, setting;
  struct {
    std::string name, meaning;  // empty: it is not timed on emulated memory with charging rules
  } charge;
  std::vector<panel> panels;
  std::vector<claim> claims;
  std::vector<verdict> verdicts;
  std::vector<std::string> notes;
  std::optional<machine_load> load;  // of other work while it was measured
  bool complete = true;              // false: the measurement was interrupted
  bool of_seeds = false;             // it is a function of the seed: other work does not change it
};

// Each point of `p` divided by that of series `baseline` at the same x; points without a baseline
// are left out.
panel relative_to(const panel& p, const std::string& baseline, std::string name);
// Series become places on the axis and places become series; `x` names the new axis.
panel transposed(const panel& p, std::string x);

// As tables have it: 1.50, and (1.42..1.61).
std::string words_of(double value);
std::string words_of(const interval& i);
// Lines with equal numbers of cells; the first column is aligned left, the others right.
std::string aligned(const std::vector<std::vector<std::string>>& lines);

// The measured values of a claim, in words: one value, or minimum, maximum and mean; and the
// interval of it.
std::string summary_of(const claim& c);

std::string table_of(const chart& c);
nlohmann::json json_of(const chart& c);

}  // namespace stele::bench
