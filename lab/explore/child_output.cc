// The text goes through a pipe, which the parent reads to its end.
#include <base/check.h>
#include <explore/child_output.h>
#include <explore/scratch_file.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace stele::explore {

using base::fail_errno;

namespace {

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t n = ::read(fd, part.data(), part.size());
    if (n > 0) text.append(part.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

result<child_output> output_of_child(const std::function<std::string()>& body) {
  std::array<int, 2> ends;
  if (::pipe(ends.data()) != 0) return fail_errno(errc::io, "cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errc::io, "cannot start a process");
  if (child == 0) {
    [&]() noexcept {  // an exception ends the child, and not what called this
                      // function
      ::close(ends[0]);
      limit_reports();
      // The pools are small. To clear huge pages at each recovery took half the time of
      // log_structured's tests.
      ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
      write_all(ends[1], body());
    }();
    ::_exit(0);
  }
  ::close(ends[1]);
  child_output out{read_all(ends[0]), ""};
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) scratch_file::remove_of(child, "");
  if (status != 0) out = {"", fmt::format("the exploring process died (status {:#x})", status)};
  return out;
}

}  // namespace stele::explore
