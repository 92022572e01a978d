// Opens a pool for a command that only reads it, also where this user or the file system allows no
// more than that.
#pragma once

#include <tx/runtime.h>

#include <memory>
#include <string>

namespace stele::cli {

// Opens the pool, as a program does that writes. Where it cannot be written, a copy in memory takes
// its place, recovered there if need be, and standard error says so; the file does not change.
// Fails the command when neither can be opened.
std::unique_ptr<detail::runtime> open_for_reading(const std::string& path);

}  // namespace stele::cli
