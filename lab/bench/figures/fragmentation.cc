// The peers of the fragmentation figure, each measured in its own process or pool.
//
// LD_PRELOAD installs a malloc in a fresh process with an otherwise empty environment, so that no
// setting of this process affects it. Huge pages are off there, so that the machine's setting of
// them does not change the figures. The process reports which file its malloc comes from: a library
// that was not loaded is an error, instead of glibc's figures.
#include <bench/figures/fragmentation.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

namespace stele::bench {

#ifdef STELE_HAVE_LIBPMEMOBJ
result<heap_space> measure_libpmemobj_heap(const heap_workload& w, const fragmentation_options& o);
#endif

namespace {

namespace fs = std::filesystem;

struct malloc_peer {
  std::string_view name, package;
  const char* library;  // a path, or a name always found; "" when the build found none
};

constexpr malloc_peer malloc_peers[] = {{"glibc", "libc6", "libc.so.6"},
                                        {"jemalloc", "libjemalloc2", STELE_JEMALLOC},
                                        {"mimalloc", "libmimalloc2.0", STELE_MIMALLOC}};
constexpr std::string_view pmemobj_peer = "libpmemobj";

struct outcome {
  bool succeeded = false;
  std::string output;
};

[[noreturn]] void become_malloc_process(int output, std::array<char*, 5>& arguments,
                                        std::array<char*, 2>& environment) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  ::execve(arguments[0], arguments.data(), environment.data());
  constexpr std::string_view why = "it cannot be started";
  [[maybe_unused]] const auto written = ::write(output, why.data(), why.size());
  ::_exit(127);
}

std::string all_of(int file) {
  std::string text;
  std::array<char, 4096> some;
  for (ssize_t n; (n = ::read(file, some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(n));
  return text;
}

result<outcome> run_malloc_process(const malloc_peer& peer, const heap_workload& w,
                                   const fragmentation_options& o) {
  std::string words[] = {STELE_MALLOC_PROCESS, std::string(w.name), std::to_string(o.phase_bytes),
                         std::to_string(o.seed), fmt::format("LD_PRELOAD={}", peer.library)};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                    words[3].data(), nullptr};
  std::array<char*, 2> environment = {words[4].data(), nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(error{errc::io, "cannot make a pipe"});
  const pid_t child = ::fork();
  if (child == 0) become_malloc_process(ends[1], arguments, environment);
  ::close(ends[1]);
  std::string output = all_of(ends[0]);
  ::close(ends[0]);
  int status = -1;
  if (child > 0) ::waitpid(child, &status, 0);
  return outcome{child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, std::move(output)};
}

bool is_there(const fs::path& library) {
  std::error_code ignored;
  return !library.empty() && (!library.has_parent_path() || fs::exists(library, ignored));
}

bool same_library(const fs::path& loaded, const fs::path& wanted) {
  std::error_code ignored;
  return loaded.filename() == wanted || fs::equivalent(loaded, wanted, ignored);
}

result<heap_space> measure_malloc(const malloc_peer& peer, const heap_workload& w,
                                  const fragmentation_options& o) {
  if (!is_there(peer.library))
    return std::unexpected(
        error{errc::unsupported,
              fmt::format("{} is not there, or was not when this was built; install the "
                          "package {} (tools/deps --deep does) and build again",
                          peer.name, peer.package)});
  const auto ended = run_malloc_process(peer, w, o);
  if (!ended) return std::unexpected(ended.error());
  heap_space space{std::string(peer.name), std::string(w.name), 0, 0};
  std::string loaded;
  if (!ended->succeeded ||
      !(std::istringstream(ended->output) >> space.live_bytes >> space.held_bytes >> loaded))
    return std::unexpected(
        error{errc::io, fmt::format("{} on {}: {} failed and output '{}'", peer.name, w.name,
                                    STELE_MALLOC_PROCESS, ended->output)});
  if (same_library(loaded, peer.library)) return space;
  return std::unexpected(
      error{errc::unsupported,
            fmt::format("{}: malloc came from {} instead of {}; install the package {}", peer.name,
                        loaded, peer.library, peer.package)});
}

result<heap_space> measure_libpmemobj([[maybe_unused]] const heap_workload& w,
                                      [[maybe_unused]] const fragmentation_options& o) {
#ifdef STELE_HAVE_LIBPMEMOBJ
  return measure_libpmemobj_heap(w, o);
#else
  return std::unexpected(
      error{errc::unsupported,
            "libpmemobj was not there when this was built; install the package libpmemobj-dev "
            "(tools/deps --deep does) and build again"});
#endif
}

}  // namespace

std::vector<std::string> heap_peers() {
  std::vector<std::string> names;
  for (const malloc_peer& peer : malloc_peers) names.emplace_back(peer.name);
  names.emplace_back(pmemobj_peer);
  return names;
}

result<heap_space> measure_peer(std::string_view peer, const heap_workload& w,
                                const fragmentation_options& o) {
  if (peer == pmemobj_peer) return measure_libpmemobj(w, o);
  const auto found = std::ranges::find(malloc_peers, peer, &malloc_peer::name);
  if (found != std::end(malloc_peers)) return measure_malloc(*found, w, o);
  return std::unexpected(error{errc::not_found, fmt::format("no allocator '{}'; there are: {}",
                                                            peer, fmt::join(heap_peers(), ", "))});
}

result<std::vector<heap_space>> measure_peers(const fragmentation_options& o) {
  std::vector<heap_space> spaces;
  for (const std::string& peer : heap_peers())
    for (const heap_workload& w : heap_workloads) {
      o.progress(fmt::format("{} on {}, {}", peer, w.name, scale_of(o)));
      auto space = measure_peer(peer, w, o);
      if (!space) return std::unexpected(std::move(space.error()));
      spaces.push_back(std::move(*space));
    }
  return spaces;
}

std::string scale_of(const fragmentation_options& o) {
  return fmt::format("{:g} MiB requested in each phase (the paper: 1 GB)",
                     static_cast<double>(o.phase_bytes) / (1 << 20));
}

}  // namespace stele::bench
