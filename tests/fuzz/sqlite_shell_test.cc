// Mutated pools under SQLite's own shell, which loads the module: what a user starts who was sent a
// pool. Each run ends by itself, within its limit of processor time, and not by a signal.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tests/budget.h>
#include <tests/fuzz/target.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stele::fuzz {
namespace {

constexpr rlim_t seconds = 20;

const char* shell() {
  for (const char* const path : {"/usr/bin/sqlite3", "/usr/local/bin/sqlite3"})
    if (::access(path, X_OK) == 0) return path;
  return nullptr;
}

// The wait status of a shell that executes these commands.
int run_shell(const std::string& commands) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit limit{seconds, seconds};
    ::setrlimit(RLIMIT_CPU, &limit);
    (void)!::freopen(commands.c_str(), "r", stdin);
    (void)!::freopen("/dev/null", "w", stdout);
    (void)!::freopen("/dev/null", "w", stderr);
    ::execl(shell(), shell(), "-batch", ":memory:", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST(sqlite_shell, ends_by_itself_on_mutated_pools) {
  if (shell() == nullptr) GTEST_SKIP() << "SQLite's shell (Debian: sqlite3) is not there";
  const std::uint64_t seed = budget::count_from("STELE_FUZZ_SEED", 1),
                      count = budget::count_from("STELE_FUZZ_SHELLS", 60);
  const std::string pool = scratch() + "/shell-pool", commands = scratch() + "/shell-commands";
  const auto seeds = sqlite_seeds();
  for (const char* const mode : {"ro", "rw"}) {
    std::ofstream(commands) << ".load " STELE_SQLITE_MODULE_FILE "\n.open 'file:" << pool
                            << "?vfs=stele&media=process&max_size=4M&mode=" << mode << "'\n"
                            << "SELECT * FROM item;\nINSERT INTO item VALUES(1, 'text');\n"
                               "UPDATE item SET n = n + 1;\nVACUUM;\nPRAGMA integrity_check;\n"
                               "PRAGMA stele_check;\n.dump\n.recover\nSELECT stele_error();\n";
    for (std::uint64_t n = 0; n < count; ++n) {
      base::rng random(base::mix(seed) ^ n);
      bytes input = seeds[n % seeds.size()];
      mutate_sqlite(input, random, input.size());
      write_file(pool, input);
      const int status = run_shell(commands);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 127)
          << "STELE_FUZZ_SEED=" << seed << ", input " << n << ", mode=" << mode << ": wait status "
          << status;
    }
  }
  std::printf("%lu inputs, STELE_FUZZ_SEED=%lu\n", 2 * count, seed);
}

}  // namespace
}  // namespace stele::fuzz
