// Where in the source fences stand, for a medium that explores: a test of each leaves it out and
// looks whether anything notices.
//
// A site is named by file, line and function, "bulk.h:149:truncate". Thread-safe but for omit() and
// on_fence(), which are called while nothing runs.
#pragma once

#include <functional>
#include <source_location>
#include <string>

namespace stele::media {

class fence_sites {
 public:
  // The fence at this site is left out from now on; empty: none is.
  static void omit(const std::string& site);
  // Told of each fence that is asked for; empty: nobody is.
  static void on_fence(std::function<void(const std::string& site)> callback);

  // Is the fence that stands here left out?
  static bool is_omitted(const std::source_location& at);
  static std::string name_of(const std::source_location& at);
};

}  // namespace stele::media
