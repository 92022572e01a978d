// Explores in a child process: a violation may be a crash, an endless loop or damaged memory, and
// must not end the caller.
#include <explore/explorer.h>
#include <explore/replay.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include <base/check.h>

namespace stele::explore {

using base::fail;
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
  for (ssize_t n; (n = ::read(fd, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  return text;
}

}  // namespace

result<child_report> report_of_child(const std::function<nlohmann::json()>& run) {
  std::array<int, 2> ends;
  if (::pipe(ends.data()) != 0) return fail_errno(errc::io, "cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errc::io, "cannot start a process");
  if (child == 0) {
    ::close(ends[0]);
    write_all(ends[1], run().dump());
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  auto report = nlohmann::json::parse(text, nullptr, false);
  if (report.is_object() && report.contains("error"))
    return fail(errc::invalid_argument, report.at("error"));
  return child_report{std::move(report),
                      fmt::format("the exploring process died (status {:#x})", status)};
}

result<findings> run_isolated(const std::function<result<findings>()>& run,
                              const std::string& line) {
  const auto made = report_of_child([&] {
    const auto found = run();
    return found ? json_of(*found) : nlohmann::json{{"error", found.error().message}};
  });
  if (!made) return std::unexpected(made.error());
  if (made->found.is_object()) return findings_of(made->found);
  findings f;
  f.violations.push_back({made->death, line});
  return f;
}

result<findings> explore_isolated(const plan& p, const settings& s) {
  return run_isolated([&] { return explore(p, s); }, format_line(run_crash{.run_plan = p}));
}

}  // namespace stele::explore
