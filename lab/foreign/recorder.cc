// Starts valgrind, and finds the reason when it fails; see recorder.h.
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <foreign/recorder.h>
#include <media/os.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace stele::foreign {

namespace {

namespace fs = std::filesystem;

// As a shell finds it.
std::string found_program(const std::string& name) {
  if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0)
      return file;
  return "";
}

result<void> check_parts(const record_settings& s) {
  if (s.program.empty())
    return base::fail(errc::invalid_argument,
                      "there is no program to run; end the command with "
                      "-- PROGRAM ARGUMENTS");
  if (found_program("valgrind").empty())
    return base::fail(errc::not_found,
                      "valgrind is not installed; install it (Debian: apt-get install valgrind)");
  if (const std::string tool = s.tool_folder + "/stele-amd64-linux"; !fs::exists(tool))
    return base::fail(errc::not_found, "this build has no recorder (" + tool +
                                           "): it needs valgrind's headers and libraries, 3.17 or "
                                           "later, on x86-64; install them and configure again");
  if (found_program(s.program.front()).empty())
    return base::fail(errc::not_found, s.program.front() + " is no program that can be run");
  if (!s.pool.empty() && !fs::exists(fs::absolute(s.pool).parent_path()))
    return base::fail(errc::not_found, "--pool " + s.pool + " is in a folder that does not exist");
  return {};
}

std::vector<std::string> arguments_of(const record_settings& s, const std::string& log) {
  std::vector<std::string> all = {"valgrind",
                                  "--tool=stele",
                                  "--vgdb=no",
                                  "-q",
                                  "--log-file=" + log,
                                  "--flush=" + s.flush,
                                  "--output=" + s.recording,
                                  "--sigill-diagnostics=yes"};
  if (!s.pool.empty()) all.push_back("--pool=" + fs::absolute(s.pool).string());
  all.emplace_back("--");
  all.insert(all.end(), s.program.begin(), s.program.end());
  return all;
}

result<int> status_of(std::vector<std::string> words, const record_settings& s) {
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  ::setenv("VALGRIND_LIB", s.tool_folder.c_str(), 1);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string output = s.folder + "/program-output";
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  pid_t process = 0;
  const int number =
      ::posix_spawnp(&process, "valgrind", &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (number != 0) return base::fail_errno(errc::io, "start valgrind", number);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return base::fail_errno(errc::io, "wait for valgrind");
  return status;
}

// The first line of the log with the text, without valgrind's "==123== ".
std::string line_with(const std::string& log, std::string_view text) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find(text) != line.npos) {
      const auto mark = line.rfind("== ");
      return mark == line.npos ? line : line.substr(mark + 3);
    }
  return "";
}

}  // namespace

result<std::string> record(const record_settings& s) {
  if (const auto checked = check_parts(s); !checked) return std::unexpected(checked.error());
  const std::string log_path = s.folder + "/valgrind.log";
  const auto status = status_of(arguments_of(s, log_path), s);
  if (!status) return std::unexpected(status.error());
  const std::string log = media::os::read_text(log_path.c_str());
  if (const std::string line = line_with(log, "unhandled instruction"); !line.empty())
    return base::fail(errc::unsupported,
                      "valgrind does not know an instruction of the program (" + line +
                          "); compile the program without the extension that it belongs to");
  if (const std::string line = line_with(log, "stele: "); !line.empty())
    return base::fail(errc::io, line);
  if (const std::string line = line_with(log, "Assertion"); !line.empty())
    return base::fail(errc::io, "the recorder failed: " + line);
  if (!fs::exists(s.recording))
    return base::fail(errc::io, "valgrind did not start the program: " +
                                    (log.empty() ? "it gave no reason" : log));
  if (WIFSIGNALED(*status))
    return fmt::format("the program ended by signal {} ({})", WTERMSIG(*status),
                       ::strsignal(WTERMSIG(*status)));
  if (WEXITSTATUS(*status) != 0)
    return fmt::format("the program ended with exit status {}", WEXITSTATUS(*status));
  return "";
}

}  // namespace stele::foreign
