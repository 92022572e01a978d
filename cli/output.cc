// Writing by descriptors, so that every error is seen where it happens.
#include <cli/command.h>
#include <cli/output.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

namespace stele::cli {

namespace {

constexpr std::size_t buffered_bytes = std::size_t{1} << 16;

std::string reason_of(int number) {
  return std::generic_category().message(number);
}

[[noreturn]] void fail_standard_output(int number) {
  fail(fmt::format("cannot write to standard output: {}; some of it may be missing",
                   reason_of(number)));
}

}  // namespace

void prepare_process() noexcept {
  for (int n = STDIN_FILENO; n <= STDERR_FILENO; ++n)
    if (::fcntl(n, F_GETFD) <
        0)  // in the wrong direction: its use is an error, as if it were closed
      (void)!::open("/dev/null", n == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  ::signal(SIGXFSZ, SIG_IGN);
}

void print_error_text(std::string_view text) noexcept {
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
  std::clearerr(stderr);
}

void check_standard_output() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int number = errno != 0 ? errno : EIO;
  if (flushed && std::ferror(stdout) == 0 && std::cout) return;
  std::clearerr(stdout);
  std::cout.clear();
  fail_standard_output(number);
}

output::output(std::string file, const std::string& content_of) : file_(std::move(file)) {
  if (file_ == "-") return;
  struct stat of_pool = {};
  const bool is_content = !content_of.empty() && ::stat(content_of.c_str(), &of_pool) == 0;
  if (const int number = out_.open(file_, is_content ? of_pool.st_mode & 0666 : 0666); number != 0)
    fail_here(number);
}

void output::fail_here(int number) const {
  if (file_ == "-") fail_standard_output(number);
  fail(fmt::format(
      "cannot write {}: {}; {}", file_, reason_of(number),
      out_.leaves_nothing() ? "nothing is left of it" : "give another name, or see to its folder"));
}

void output::flush() {
  if (file_ == "-") {
    errno = 0;
    const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), stdout) == buffer_.size();
    buffer_.clear();
    if (!written) fail_here(errno);
    return;
  }
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t n = ::write(out_.fd(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_here(errno);
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffered_bytes) flush();
}

void output::keep(when_kept how) {
  flush();
  if (file_ == "-") return check_standard_output();
  if (const int number = out_.keep(how == when_kept::durable); number != 0) fail_here(number);
}

}  // namespace stele::cli
