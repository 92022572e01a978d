// Writing by descriptors, so that every error is seen where it happens.
#include <cli/command.h>
#include <cli/output.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
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

// /dev/stdout may lead to an ordinary file, which the shell has open.
bool names_a_descriptor(std::string_view file) {
  return file == "/dev/stdout" || file == "/dev/stderr" || file.starts_with("/dev/fd/") ||
         file.starts_with("/proc/");
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

output::output(std::string file) : file_(std::move(file)), target_(file_) {
  if (file_ == "-") return;
  struct stat there = {};
  const bool exists = ::stat(file_.c_str(), &there) == 0;
  if (exists && (!S_ISREG(there.st_mode) || names_a_descriptor(file_))) {
    fd_ = ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd_ < 0) fail_here();
    return;
  }
  std::error_code none;
  if (exists) target_ = std::filesystem::canonical(file_, none).string();
  if (none) target_ = file_;
  temporary_ = fmt::format("{}.writing.{}", target_, ::getpid());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    temporary_.clear();
    fail_here();
  }
  if (exists) (void)!::fchmod(fd_, there.st_mode & 0777);
}

output::~output() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void output::fail_here() const {
  const int number = errno;
  if (file_ == "-") fail_standard_output(number);
  fail(fmt::format(
      "cannot write {}: {}; {}", file_, reason_of(number),
      temporary_.empty() ? "give another name, or see to its folder" : "nothing is left of it"));
}

void output::flush() {
  if (file_ == "-") {
    errno = 0;
    const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), stdout) == buffer_.size();
    buffer_.clear();
    if (!written) fail_here();
    return;
  }
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_here();
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
  const bool durable = how == when_kept::durable && !temporary_.empty();
  if (durable && ::fsync(fd_) != 0) fail_here();
  if (::close(std::exchange(fd_, -1)) != 0) fail_here();
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_here();
  temporary_.clear();
  if (!durable) return;
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  const int in = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (in >= 0) (void)::fsync(in), ::close(in);
}

}  // namespace stele::cli
