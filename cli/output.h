// What the commands write: files that are whole or not there, and lines on the standard streams.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace stele::cli {

// Called before anything is opened. The closed ones of descriptors 0, 1 and 2 are opened, so that
// no file gets their numbers; to use them is an error all the same. A file that exceeds the
// process's limit is an error, not a signal.
void prepare_process() noexcept;

// Writes to standard error. What cannot be written is dropped: there is nobody to tell.
void print_error_text(std::string_view text) noexcept;
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_error_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Ends the command with an error if standard output has not taken all that was printed.
void check_standard_output();

enum class when_kept { written, durable };

// A file that a command writes; "-" is standard output. It is written under a temporary name beside
// its own, so that an error, an interrupt or a signal leaves what had the name before. A device, a
// FIFO and /dev/stdout are written as they are. Every failure ends the command with a sentence.
class output {
 public:
  explicit output(std::string file);
  ~output();  // without keep(), nothing is left
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  void write(std::string_view text);
  // All is written, and the file gets its name.
  void keep(when_kept how = when_kept::written);

 private:
  void flush();
  [[noreturn]] void fail_here() const;

  const std::string file_;
  std::string target_;     // what file_ leads to
  std::string temporary_;  // empty: written in place
  std::string buffer_;
  int fd_ = -1;
};

}  // namespace stele::cli
