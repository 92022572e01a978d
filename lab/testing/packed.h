// A report as text, to come out of a child process.
#pragma once

#include <stele/testing.h>

#include <string>

namespace stele::testing {

// All but the name of the structure.
std::string packed(const report& r);
report unpacked(const std::string& text);

}  // namespace stele::testing
