// Creates the temporary folder, and forks the process that uses it; the parent removes the folder.
#include <cli/command.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace stele::cli {
namespace {

volatile pid_t worker = 0;

void forward_signal(int number) {
  ::kill(worker, number);
}

// While one exists, SIGTERM and SIGINT wait: they would leave the folder behind.
class signals_held {
 public:
  signals_held() noexcept {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGINT);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~signals_held() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  signals_held(const signals_held&) = delete;
  signals_held& operator=(const signals_held&) = delete;

 private:
  sigset_t before_;
};

// Waits for the worker, removes the folder, and ends with the worker's status or signal.
[[noreturn]] void outlive_worker(const std::string& folder) {
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  ::_exit(128 + WTERMSIG(status));
}

// The caller holds both signals. A SIGINT that came before there was a worker is forwarded here: to
// ignore it drops it.
void forward_signals() noexcept {
  struct sigaction action{};
  action.sa_handler = forward_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigset_t came;
  if (::sigpending(&came) == 0 && sigismember(&came, SIGINT) == 1) forward_signal(SIGINT);
  action.sa_handler = SIG_IGN;  // a terminal sends SIGINT to both processes
  sigaction(SIGINT, &action, nullptr);
}

// Removes the folders of commands that were killed before they could: their names have the process
// that made them, and no process has that number now.
void remove_leftovers(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    int pid = 0, length = 0;
    const std::string name = entry.path().filename();
    if (std::sscanf(name.c_str(), "stele-%d-%*6s%n", &pid, &length) == 1 && pid > 0 &&
        static_cast<std::size_t>(length) == name.size() && ::kill(pid, 0) != 0 && errno == ESRCH)
      left.push_back(entry.path());
  }
  for (const fs::path& folder : left) fs::remove_all(folder, ignored);
}

}  // namespace

std::string folder_in_memory() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ".";
}

std::string enter_scratch(const std::string& dir) {
  if (!std::filesystem::is_directory(dir)) fail(fmt::format("--dir {} is not a directory", dir));
  remove_leftovers(dir);
  std::string folder = fmt::format("{}/stele-{}-XXXXXX", dir, ::getpid());
  std::optional<signals_held> held(std::in_place);
  if (::mkdtemp(folder.data()) == nullptr)
    fail(fmt::format("cannot make a folder in {}: {}", dir, std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  worker = ::fork();
  if (worker < 0) {
    const std::string why = std::strerror(errno);
    ::rmdir(folder.c_str());
    fail(fmt::format("cannot start a process: {}", why));
  }
  if (worker > 0) {
    forward_signals();
    held.reset();
    outlive_worker(folder);
  }
  held.reset();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  return folder;
}

}  // namespace stele::cli
