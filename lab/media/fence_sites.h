// Where in the source fences stand, for a medium that explores: a test of each leaves it out and looks whether anything
// notices.
//
// A site is named by file, line and function, "bulk.h:149:truncate". Thread-safe but for drop() and watch(), which are
// called while nothing runs.
#pragma once

#include <functional>
#include <source_location>
#include <string>

namespace stele::media {

class fence_sites {
 public:
  // The fence at this site is left out from now on; empty: none is.
  static void drop(const std::string& site);
  // Told of each fence that is asked for; empty: nobody is.
  static void watch(std::function<void(const std::string& site)> told);

  // Is the fence that stands here left out?
  static bool drops(const std::source_location& at);
  static std::string name_of(const std::source_location& at);
};

}  // namespace stele::media
