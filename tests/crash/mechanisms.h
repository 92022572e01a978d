// The mechanisms that the crash tests run: all that promise durability. A line in a list.cmake adds
// a new one.
#pragma once

#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stele::explore {

inline std::vector<std::string> durable_mechanisms() {
  std::vector<std::string> names;
  for (const auto& m : detail::mechanisms())
    if (m.name != "none") names.push_back(m.name);
  return names;
}

// A mechanism's name as part of a test's name.
inline std::string test_name(std::string mechanism) {
  std::ranges::replace(mechanism, '-', '_');
  return mechanism;
}

}  // namespace stele::explore
