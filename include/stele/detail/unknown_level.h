// The sentence for an option `require` that names no durability level, for C and Python.
//
//   std::puts(stele::detail::unknown_level("disk").c_str());  // require is 'disk'; it is ...
#pragma once

#include <string>
#include <string_view>

namespace stele::detail {

inline std::string unknown_level(std::string_view require) {
  return "require is '" + std::string(require) +
         "'; it is 'process', 'power' or 'power, cache included'";
}

}  // namespace stele::detail
