// A child process that answers one line for each line it is sent.
//
// It ends with this object, and when the thread that started it ends or is killed. It ignores
// SIGINT, which a terminal sends to parent and child alike. Its output goes to memory. Its
// addresses are not randomized, so that fixed addresses are free for it.
#pragma once

#include <stele/error.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

namespace stele::bench {

// A stream socket that carries lines; closes it. Not thread-safe.
class line_socket {
 public:
  explicit line_socket(int fd) noexcept : fd_(fd) {}
  ~line_socket();
  line_socket(line_socket&& other) noexcept;
  line_socket& operator=(line_socket&&) = delete;

  // Adds the newline; false when the other end is closed.
  bool send(std::string line);
  // The next line without its newline; nothing when the other end is closed.
  std::optional<std::string> receive();

 private:
  int fd_;
  std::string received_;  // bytes after the last line
};

class child_process {
 public:
  // Starts the program, whose descriptor 3 is the other end of the socket. Errors: io.
  [[nodiscard]] static result<child_process> start(const std::string& path,
                                                   std::span<const std::string> arguments,
                                                   std::span<const std::string> environment);
  ~child_process();  // kills it
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;

  // Errors: io, when the process has ended; the message has its last line of output.
  [[nodiscard]] result<std::string> ask(const std::string& request);

 private:
  child_process(std::string path, pid_t pid, line_socket socket, int output) noexcept;
  std::unexpected<error> ended();

  std::string path_;
  pid_t pid_;  // 0: waited for already
  line_socket socket_;
  int output_;
};

}  // namespace stele::bench
