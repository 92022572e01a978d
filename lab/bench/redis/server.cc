// Starts and ends servers.
#include <base/check.h>
#include <bench/redis/connection.h>
#include <bench/redis/server.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace stele::bench::redis {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds start_limit{60};  // loading a large pool takes a while
constexpr int cannot_execute = 127;

std::string end_of(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

result<std::unique_ptr<server>> server::start(const std::string& folder,
                                              std::span<const std::string> settings) {
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (failed)
    return base::fail(errc::io, fmt::format("cannot make the folder {} of a Redis server: {}",
                                            folder, failed.message()));
  std::vector<std::string> words = {"redis-server",
                                    "--port",
                                    "0",
                                    "--unixsocket",
                                    folder + "/socket",
                                    "--dir",
                                    folder,
                                    "--save",
                                    "",
                                    "--daemonize",
                                    "no",
                                    "--logfile",
                                    folder + "/log"};
  words.insert(words.end(), settings.begin(), settings.end());
  std::unique_ptr<server> started(new server(folder, std::move(words)));
  if (auto ready = started->start_again(); !ready) return std::unexpected(std::move(ready.error()));
  return started;
}

result<> server::start_again() {
  assert(process_ == 0);
  std::vector<char*> arguments;
  for (std::string& w : arguments_) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return base::fail(errc::io, "cannot start redis-server: fork failed");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGINT, SIG_IGN);
    if (const int nowhere = ::open("/dev/null", O_RDWR); nowhere >= 0) ::dup2(nowhere, 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(cannot_execute);
  }
  process_ = process;
  return wait_until_ready();
}

result<> server::wait_until_ready() {
  const auto end = std::chrono::steady_clock::now() + start_limit;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_execute)
        return base::fail(errc::unsupported,
                          "there is no redis-server, which is the host; install it (Debian: "
                          "redis-server)");
      return base::fail(
          errc::io,
          fmt::format("redis-server has ended{}: {}",
                      WIFSIGNALED(status) ? fmt::format(" by signal {}", WTERMSIG(status)) : "",
                      end_of(folder_ + "/log")));
    }
    if (auto there = connection::open(socket()); there && (*there)->run({"PING"})) return {};
    if (std::chrono::steady_clock::now() > end)
      return base::fail(errc::io, fmt::format("redis-server does not answer after {} s: {}",
                                              start_limit.count(), end_of(folder_ + "/log")));
  }
}

void server::kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}

server::~server() {
  kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::uint64_t server::file_bytes() const {
  std::uint64_t sum = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, ignored))
    if (entry.is_regular_file(ignored) && entry.path().filename() != "log")
      sum += entry.file_size(ignored);
  return sum;
}

std::vector<std::string> module_settings(std::string_view media, std::size_t pool_bytes,
                                         std::string_view mechanism) {
  return {"--loadmodule", STELE_REDIS_MODULE,
          "path",         "pool.stele",
          "size",         fmt::format("{}", pool_bytes),
          "mechanism",    std::string(mechanism),
          "media",        std::string(media)};
}

result<std::string> free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool found = probe >= 0 && ::bind(probe, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(probe, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (probe >= 0) ::close(probe);
  if (!found) return base::fail(errc::io, "there is no free port on the loopback");
  return fmt::format("{}", ntohs(at.sin_port));
}

}  // namespace stele::bench::redis
