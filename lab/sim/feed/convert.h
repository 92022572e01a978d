// Converts traces of other tools to tapes: loads, stores and compute of every line, or an error for
// the first wrong line.
//
// The caller names the format; it is never guessed, and it is read strictly
// (docs/format/traces.md): every line is converted or, where the format allows it, skipped. Memory
// is bounded by the longest allowed line, whatever the file's length.
#pragma once

#include <lab_media/tape.h>
#include <stele/error.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::sim {

struct convert_report {
  std::uint64_t lines = 0;   // of the file
  std::uint64_t events = 0;  // on the tape
};

// Called from time to time with the number of bytes read; returning false ends the conversion.
using convert_progress = std::function<bool(std::uint64_t bytes_read)>;

std::vector<std::string> trace_formats();

// The addresses of a trace that are persistent, whole pages: a tape has them as offsets from
// `begin`. All others are volatile; their pages of 4 KiB follow each other on the tape, from
// tape_volatile_at on, in the order in which the trace first accesses them.
struct persistent_range {
  std::uint64_t begin = 0, end = 0;
};
// "0x4a00000-0x5000000", decimal or hexadecimal. Errors: invalid_argument.
[[nodiscard]] result<persistent_range> parse_persistent_range(std::string_view text);

// Reads the trace and writes its events to the tape, which the caller finishes. Without a range,
// all addresses are persistent and kept as they are. Errors: invalid_argument (no such format),
// not_found, permission, io, corrupt (file, line number, line, what was expected), cancelled (by
// `progress`).
[[nodiscard]] result<convert_report> convert_trace(
    std::string_view format, const std::string& path, media::tape_writer& tape,
    const convert_progress& progress = {}, const std::optional<persistent_range>& persistent = {});

// A request of a trace to a memory.
struct traced_request {
  bool write = false;
  std::uint64_t address = 0;  // of the line
  std::uint64_t cycle = 0;    // of the memory's clock; requests have different ones
};

// The requests of a trace whose lines are requests to a memory, one after the other. At most one
// comes in a cycle; without cycles on the trace, one comes in each (docs/format/traces.md).
class request_trace {
 public:
  // Errors: invalid_argument (no such format), not_found, permission.
  [[nodiscard]] static result<std::unique_ptr<request_trace>> open(std::string_view format,
                                                                   const std::string& path);
  virtual ~request_trace() = default;

  // Empty at the end. Errors: io, corrupt (file, line number, line, what was expected).
  [[nodiscard]] virtual result<std::optional<traced_request>> next() = 0;
  virtual std::uint64_t bytes_read() const noexcept = 0;
};
std::vector<std::string> request_trace_formats();

// The options of a converted tape. With a range, its pool size is the range's size.
inline constexpr media::tape_options converted_shape{.record_bytes = false};

}  // namespace stele::sim
