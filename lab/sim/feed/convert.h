// Traces of other tools as tapes: loads, stores and compute of every line, or the first line that
// is not as it should be.
//
// The format is named by the caller, never guessed, and read strictly (docs/format/traces.md): no
// line is lost, none is skipped that the format does not allow to be. Memory is bounded by the
// longest line allowed, whatever the file's length.
#pragma once

#include <media/tape.h>
#include <stele/error.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::sim {

struct convert_report {
  std::uint64_t lines = 0;   // of the file
  std::uint64_t events = 0;  // on the tape
};

// Told now and then how far the input has been read; false ends the conversion.
using convert_progress = std::function<bool(std::uint64_t bytes_read)>;

std::vector<std::string> trace_formats();

// Reads the trace and writes its events to the tape, which the caller finishes. Errors:
// invalid_argument (no such format), not_found, permission, io, corrupt (file, line number, line,
// what was expected), cancelled (by `progress`).
[[nodiscard]] result<convert_report> convert_trace(std::string_view format, const std::string& path,
                                                   media::tape_writer& tape,
                                                   const convert_progress& progress = {});

// The shape of such a tape.
inline constexpr media::tape_options converted_shape{.record_bytes = false};

}  // namespace stele::sim
