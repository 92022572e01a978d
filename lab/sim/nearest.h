// Finds the right name that a wrong name most likely meant.
//
// The measure is the edit distance: letters inserted, deleted or replaced (Levenshtein, "Binary
// codes capable of correcting deletions, insertions, and reversals", 1966). Of equally near names
// the first wins, so that error messages are the same in each run. Meant for error messages: short
// names, short lists.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace stele::sim {

inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distances from the current prefix of a to each prefix of b
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

// Precondition: `names` is not empty.
template <class Names>
std::string_view nearest(std::string_view wrong, const Names& names) {
  return *std::ranges::min_element(
      names, {}, [&](std::string_view name) { return edit_distance(wrong, name); });
}

}  // namespace stele::sim
