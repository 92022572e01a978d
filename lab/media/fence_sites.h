// The fences in the source, for a medium that explores: a test leaves out each fence in turn and
// checks that something fails.
//
// A site is named by file, line and function, "bulk_write_back.h:71:truncate". Thread-safe, except
// omit() and on_fence(), which may be called only while nothing runs.
#pragma once

#include <functional>
#include <source_location>
#include <string>

namespace stele::media {

class fence_sites {
 public:
  // Leaves out the fence at this site from now on; empty: none.
  static void omit(const std::string& site);
  // `callback` is called for each fence that is requested; empty: no callback.
  static void on_fence(std::function<void(const std::string& site)> callback);

  // Whether the fence at this place is left out.
  static bool is_omitted(const std::source_location& at);
  static std::string name_of(const std::source_location& at);
};

}  // namespace stele::media
