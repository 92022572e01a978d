// The places in the source that ask a medium for fences, flushes and streams, for a medium that
// explores: a test leaves out what one place asks for, and checks that something fails. Likewise of
// steps that are no medium's and ask for their caller's place (base::planted_at).
//
// A place is named by file, line and function, "bulk_write_back.h:71:truncate", or by file and
// function, because lines move: "redo.h:store_home" is all of the function's, "redo.h:store_home#2"
// the second that one call of the function asks for. Those are counted by their lines: a call must
// not skip an earlier one. Thread-safe, except omit() and on_fence(), which may be called only
// while nothing runs.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>

namespace stele::media {

class event_sites {
 public:
  enum class event : std::uint8_t { fence, flush, stream, step };
  // What is left out of an event: nothing, all of it, the last line of what is flushed or streamed,
  // or that line if it is the last one before the next fence.
  enum class omitted : std::uint8_t { nothing, all, last_line, last_line_before_fence };

  // Leaves out from now on what the words say; empty: nothing. Words separated by ", ", of which
  // each is "fence PLACE", "flush PLACE", "stream PLACE", "last flush PLACE", "last stream PLACE"
  // or "short stream PLACE", which leaves out the last line of each stream. Any other first word is
  // that of a step: "pause PLACE". A place that nothing passes leaves nothing out.
  static void omit(std::string_view words);
  // `callback` is called for each fence that is requested; empty: no callback.
  static void on_fence(std::function<void(const std::string& site)> callback);

  // What is left out of an event that this place asks for.
  static omitted omitted_of(event what, const std::source_location& at);
  static std::string name_of(const std::source_location& at);
  // Whether a place, of which `name` is the file and the function, is this one.
  static bool is_at(std::string_view name, const std::source_location& at);
};

}  // namespace stele::media
