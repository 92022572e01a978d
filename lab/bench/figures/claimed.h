// What the publications claim, one row a claim, in this project's words: which values of ours would
// agree, and how ours are read off a chart.
//
// A claim that can be read in several ways has a reading for each, named by its rule; the first is
// the figure as it is drawn by default, without a name. What is expected is the publication's
// number as far as its text gives it: a printed number to half of its last digit, "about" and
// "almost" as each table says, a direction as all values beyond zero.
#pragma once

#include <bench/figures/claims.h>

#include <array>
#include <limits>
#include <span>
#include <string_view>

namespace stele::bench {

struct claim_reading {
  const char* rule = nullptr;  // "": by default; null: there is no such reading
  const char* what = nullptr;  // of the statement that says how
};

struct published_claim {
  const char *figure, *sentence, *unit;
  interval expected;
  summary sum_up;
  std::array<claim_reading, 8> readings;
};

// Of "blurred", "lsnvmm", "archapt", "dp2" or "kiln"; empty for others.
std::span<const published_claim> claimed_by(std::string_view paper) noexcept;

// Of the values at a claim's places.
double least_of(const std::vector<double>& values);
double most_of(const std::vector<double>& values);
double rise_of(const std::vector<double>& values);  // the last less the first

namespace expected {
constexpr interval near(double value, double half) {
  return {value - half, value + half};
}
constexpr interval at_least(double value) {
  return {value, std::numeric_limits<double>::infinity()};
}
constexpr interval at_most(double value) {
  return {-std::numeric_limits<double>::infinity(), value};
}
inline constexpr interval gains = at_least(0), loses = at_most(0);
}  // namespace expected

}  // namespace stele::bench
