// Writes images, starts shells, and waits for them; see checker.h.
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <foreign/checker.h>
#include <media/os.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace stele::foreign {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t page_size = 4096, most_printed = 64 * 1024, most_first_line = 200;
constexpr int not_executable = 126, not_found = 127;  // of a shell

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

bool is_zero(const std::byte* page) {
  return std::all_of(page, page + page_size, [](std::byte b) { return b == std::byte{0}; });
}

// Writes the pages that are not zero; the rest of the file is a hole.
bool write_pages(int fd, const crash_image& image) {
  for (std::uint64_t at = 0; at < image.size; at += page_size) {
    const std::byte* const page = image.bytes.data() + at;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(page_size, image.size - at));
    if (!is_zero(page) && !media::os::write_all(fd, page, size, at)) return false;
  }
  return media::os::truncate(fd, image.size) == 0;
}

// A new file each time: the last command may have changed, replaced or removed it.
template <class Write>
result<void> make_file(const std::string& path, Write&& write) {
  std::error_code none;
  std::filesystem::remove_all(path, none);
  const int fd = media::os::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  const bool is_written = fd >= 0 && write(fd);
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (!is_written) return base::fail_errno(errc::io, "write the image " + path, number);
  return {};
}

std::string first_line(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != line.npos)
      return std::string(line.substr(0, most_first_line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

std::string end_of_process(int status, bool in_time, std::chrono::milliseconds timeout) {
  if (!in_time) return fmt::format("did not end in {} ms", timeout.count());
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

// A process group of its own, so that what it leaves behind can be ended.
result<pid_t> start_shell(const std::string& command, const std::string& printed) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, printed.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t process = 0;
  const int number = ::posix_spawn(&process, "/bin/sh", &files, &attributes,
                                   const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (number != 0) return base::fail_errno(errc::io, "start /bin/sh for the checker", number);
  return process;
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  return "'" + replaced(word, "'", "'\\''") + "'";
}

result<checker> checker::make(check_settings settings) {
  if (settings.command.find("{}") == settings.command.npos)
    return base::fail(errc::invalid_argument, "--check '" + settings.command +
                                                  "' does not name the image: write {} where its "
                                                  "path belongs");
  checker c(std::move(settings));
  for (unsigned i = 0; i < std::max(1u, c.settings_.jobs); ++i) {
    job j;
    j.folder = fmt::format("{}/check-{}", c.settings_.folder, i);
    std::error_code failed;
    std::filesystem::create_directories(j.folder, failed);
    if (failed) return base::fail(errc::io, "make " + j.folder + ": " + failed.message());
    c.jobs_.push_back(std::move(j));
  }
  return c;
}

checker::~checker() {
  for (job& j : jobs_)
    if (j.process != 0) {
      ::kill(-j.process, SIGKILL);
      ::waitpid(j.process, nullptr, 0);
      ::close(j.descriptor);
    }
}

bool checker::reads_output() const noexcept {
  return settings_.command.find("{output}") != settings_.command.npos;
}

std::string checker::command_in(const job& j) const {
  const std::string command =
      replaced(settings_.command, "{output}", shell_quoted(j.folder + "/output"));
  return replaced(command, "{}", shell_quoted(j.folder + "/" + settings_.image_name));
}

result<void> checker::start(job& j, const crash_image& image) {
  const auto written = make_file(j.folder + "/" + settings_.image_name,
                                 [&](int fd) { return write_pages(fd, image); });
  if (!written) return written;
  if (reads_output()) {
    const auto said = make_file(j.folder + "/output", [&](int fd) {
      return media::os::write_all(fd, image.output.data(), image.output.size(), 0);
    });
    if (!said) return said;
  }
  const auto process = start_shell(command_in(j), j.folder + "/printed");
  if (!process) return std::unexpected(process.error());
  j.process = *process;
  j.descriptor = static_cast<int>(::syscall(SYS_pidfd_open, *process, 0));
  j.deadline = clock::now() + settings_.timeout;
  if (j.descriptor < 0) return base::fail_errno(errc::io, "watch the checker");
  return {};
}

result<void> checker::begin(const crash_image& image, receiver done) {
  auto idle = [](const job& j) { return j.process == 0; };
  while (std::ranges::none_of(jobs_, idle))
    if (const auto waited = wait_for_one(); !waited) return waited;
  job& j = *std::ranges::find_if(jobs_, idle);
  j.done = std::move(done);
  return start(j, image);
}

result<void> checker::wait_for_all() {
  while (std::ranges::any_of(jobs_, [](const job& j) { return j.process != 0; }))
    if (const auto waited = wait_for_one(); !waited) return waited;
  return {};
}

result<void> checker::wait_for_one() {
  std::vector<pollfd> watched;
  auto first = clock::time_point::max();
  for (const job& j : jobs_) {
    if (j.process == 0) continue;
    watched.push_back({j.descriptor, POLLIN, 0});
    first = std::min(first, j.deadline);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - clock::now()).count();
  ::poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
  const auto now = clock::now();
  for (job& j : jobs_) {
    const auto ended = std::ranges::find_if(watched, [&](const pollfd& p) {
      return j.process != 0 && p.fd == j.descriptor && p.revents != 0;
    });
    if (ended != watched.end() || (j.process != 0 && j.deadline <= now))
      if (const auto finished = finish(j, ended != watched.end()); !finished) return finished;
  }
  return {};
}

result<void> checker::finish(job& j, bool in_time) {
  ::kill(-j.process, SIGKILL);
  int status = 0;
  while (::waitpid(j.process, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(j.descriptor);
  j.process = 0;
  judgement seen;
  seen.printed = media::os::read_text((j.folder + "/printed").c_str(), most_printed);
  seen.consistent = in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  seen.could_run = !WIFEXITED(status) ||
                   (WEXITSTATUS(status) != not_found && WEXITSTATUS(status) != not_executable);
  seen.what = end_of_process(status, in_time, settings_.timeout);
  if (const std::string line = first_line(seen.printed); !line.empty()) seen.what += ": " + line;
  const receiver done = std::move(j.done);
  done(seen);
  return {};
}

result<judgement> checker::judge(const crash_image& image) {
  judgement seen;
  if (const auto begun = begin(image, [&](const judgement& j) { seen = j; }); !begun)
    return std::unexpected(begun.error());
  if (const auto waited = wait_for_all(); !waited) return std::unexpected(waited.error());
  return seen;
}

}  // namespace stele::foreign
