// Starts a program and exchanges lines with it.
#include <bench/child_process.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

namespace stele::bench {
namespace {

constexpr int socket_of_child = 3;

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: makes system calls only.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         int socket, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::signal(SIGINT, SIG_IGN);
  ::personality(ADDR_NO_RANDOMIZE);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (socket == socket_of_child)
    ::fcntl(socket, F_SETFD, 0);
  else
    ::dup2(socket, socket_of_child);
  ::execve(arguments[0], arguments.data(), environment.data());
  constexpr std::string_view why = "it cannot be started";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(127);
}

std::string last_line_of(int file) {
  std::array<char, 1024> tail;
  const off_t size = ::lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(tail.size()));
  const ssize_t n = ::pread(file, tail.data(), tail.size(), from);
  std::string_view text(tail.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

}  // namespace

line_socket::~line_socket() {
  if (fd_ >= 0) ::close(fd_);
}
line_socket::line_socket(line_socket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}

bool line_socket::send(std::string line) {
  line += '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return false;
    sent += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  return true;
}

std::optional<std::string> line_socket::receive() {
  std::array<char, 4096> some;
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    const ssize_t n = ::recv(fd_, some.data(), some.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    received_.append(some.data(), static_cast<std::size_t>(n));
  }
}

result<child_process> child_process::start(const std::string& path,
                                           std::span<const std::string> arguments,
                                           std::span<const std::string> environment) {
  std::vector<std::string> words = {path}, variables(environment.begin(), environment.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto word_pointers = pointers_to(words), variable_pointers = pointers_to(variables);
  int ends[2] = {-1, -1};
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  if (output < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    const std::string why = std::strerror(errno);
    if (output >= 0) ::close(output);
    return std::unexpected(error{errc::io, fmt::format("cannot start {}: {}", path, why)});
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(word_pointers, variable_pointers, ends[1], output, parent);
  const int why = errno;
  ::close(ends[1]);
  child_process started(path, std::max(pid, 0), line_socket(ends[0]), output);
  if (pid < 0)
    return std::unexpected(
        error{errc::io, fmt::format("cannot start {}: {}", path, std::strerror(why))});
  return started;
}

child_process::child_process(std::string path, pid_t pid, line_socket socket, int output) noexcept
    : path_(std::move(path)), pid_(pid), socket_(std::move(socket)), output_(output) {}
child_process::child_process(child_process&& other) noexcept
    : path_(std::move(other.path_)),
      pid_(std::exchange(other.pid_, 0)),
      socket_(std::move(other.socket_)),
      output_(std::exchange(other.output_, -1)) {}
child_process::~child_process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

result<std::string> child_process::ask(const std::string& request) {
  if (pid_ == 0 || !socket_.send(request)) return ended();
  auto answer = socket_.receive();
  if (!answer) return ended();
  return std::move(*answer);
}

std::unexpected<error> child_process::ended() {
  int status = 0;
  if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status, 0);
  const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                              : fmt::format("status {}", WEXITSTATUS(status));
  return std::unexpected(
      error{errc::io, fmt::format("{} ended with {}; its last line of output is '{}'", path_, how,
                                  last_line_of(output_))});
}

}  // namespace stele::bench
