// A crash state in one line, for --replay: "POINT lost OFFSET=OPTION,..." or "POINT kept ...".
//
// The lines at these offsets have these options of crash_model.h. All others have lost their
// pending stores, or have kept them. "POINT kept" alone is the state in which nothing is lost.
#pragma once

#include <stele/error.h>

#include <cstdint>
#include <map>
#include <string>

namespace stele::foreign {

struct state_line {
  std::uint64_t point = 0;
  bool keeps_others = false;
  std::map<std::uint64_t, std::uint64_t> options;  // by offset of the line

  std::string text() const;
  // Errors: invalid_argument.
  [[nodiscard]] static result<state_line> parse(const std::string& text);
};

}  // namespace stele::foreign
