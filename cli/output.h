// What the commands write: files that are whole or not there, and lines on the standard streams.
#pragma once

#include <fmt/format.h>
#include <media/output_file.h>

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

// A file that a command writes, whole or not at all; "-" is standard output. Every failure ends the
// command with a sentence.
class output {
 public:
  // content_of: the pool whose content is written. A new file is at most as open to others as it.
  explicit output(std::string file, const std::string& content_of = "");

  void write(std::string_view text);
  // All is written, and the file gets its name.
  void keep(when_kept how = when_kept::written);

 private:
  void flush();
  [[noreturn]] void fail_here(int number) const;

  const std::string file_;
  media::output_file out_;
  std::string buffer_;
};

}  // namespace stele::cli
