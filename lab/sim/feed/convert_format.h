// The interface of a trace format to the converter: parses lines, and says what it expected when it
// cannot.
#pragma once

#include <lab_media/tape.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stele::sim {

// Where the events of a trace go: to a tape, or to a memory.
class trace_sink {
 public:
  void load(unsigned thread, std::uint64_t address, std::uint32_t length) {
    event(media::tape_op::load, thread, address, length);
  }
  void store(unsigned thread, std::uint64_t address, std::uint32_t length) {
    event(media::tape_op::store, thread, address, length);
  }
  void compute(unsigned thread, std::uint64_t instructions) {
    if (instructions != 0) event(media::tape_op::compute, thread, instructions, 0);
  }
  // A request to a memory controller: the 64-byte line that holds the address.
  void line(bool writes, unsigned thread, std::uint64_t address) {
    if (writes) {
      store(thread, address & ~std::uint64_t{63}, 64);
    } else {
      load(thread, address & ~std::uint64_t{63}, 64);
    }
  }

 protected:
  ~trace_sink() = default;

 private:
  virtual void event(media::tape_op what, unsigned thread, std::uint64_t address,
                     std::uint32_t length) = 0;
};

// What the format expected in place of the line; empty when the line is right.
using format_mismatch = std::optional<std::string>;

class trace_format {
 public:
  virtual ~trace_format() = default;
  // Parses a line without its line end. Writes nothing to the sink when the line is wrong.
  virtual format_mismatch parse_line(std::string_view line, trace_sink& to) = 0;
  // Called after the last line.
  virtual void finish(trace_sink&) {}
};

std::unique_ptr<trace_format> make_lackey();
std::unique_ptr<trace_format> make_ramulator();
std::unique_ptr<trace_format> make_ramulator_memory();
std::unique_ptr<trace_format> make_ramulator2();
std::unique_ptr<trace_format> make_dramsim3();
std::unique_ptr<trace_format> make_nvmain();

// Helpers for parsing fields.

// The fields of a line, separated by spaces and tabs. Fields after the eighth are ignored.
class line_fields {
 public:
  explicit line_fields(std::string_view line) {
    for (std::size_t at = line.find_first_not_of(" \t"); at != line.npos && count_ < most;
         at = line.find_first_not_of(" \t", at)) {
      const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
      fields_[count_++] = line.substr(at, end - at);
      at = end;
    }
  }
  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  std::string_view operator[](std::size_t i) const { return fields_[i]; }
  std::string_view back() const { return fields_[count_ - 1]; }

 private:
  static constexpr std::size_t most = 8;  // more than any format has
  std::array<std::string_view, most> fields_;
  std::size_t count_ = 0;
};

// Parses the whole text as a number without sign.
inline std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}
inline std::optional<std::uint64_t> decimal(std::string_view text) {
  return number_of(text, 10);
}
inline bool has_0x(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X");
}
inline std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  return number_of(text, 16);
}
inline std::optional<std::uint64_t> hexadecimal_0x(std::string_view text) {
  return has_0x(text) ? hexadecimal(text.substr(2)) : std::nullopt;
}
// Hexadecimal with 0x, or decimal. A leading zero is refused: some readers take it for octal,
// others for decimal.
inline std::optional<std::uint64_t> either_base(std::string_view text) {
  if (has_0x(text)) return hexadecimal_0x(text);
  return text.size() > 1 && text.front() == '0' ? std::nullopt : decimal(text);
}

// Turns times of requests into compute events: a thread is idle in the cycles between two of its
// requests, and in those before its first.
class request_clock {
 public:
  // Cycles never decrease.
  bool accepts(std::uint64_t cycle) const noexcept { return cycle >= last_; }
  std::uint64_t last() const noexcept { return last_; }
  // The idle cycles of the thread before a request at `cycle`.
  std::uint64_t idle_before(unsigned thread, std::uint64_t cycle) {
    last_ = cycle;
    std::uint64_t& next = next_.try_emplace(thread, 0).first->second;
    const std::uint64_t idle = cycle > next ? cycle - next : 0;
    next = std::max(next, cycle) + 1;
    return idle;
  }

 private:
  std::uint64_t last_ = 0;
  std::unordered_map<unsigned, std::uint64_t> next_;  // the cycle after a thread's last request
};

}  // namespace stele::sim
