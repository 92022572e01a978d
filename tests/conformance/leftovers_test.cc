// Commands leave no files behind when they end, are interrupted or are killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  std::error_code gone;
  std::size_t n = 0;
  for (auto at = fs::recursive_directory_iterator(folder, gone);
       at != fs::recursive_directory_iterator(); at.increment(gone))
    ++n;
  return n;
}

// Starts the command in its own process group, as a shell does.
pid_t start(const std::vector<std::string>& words) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  ::signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, 1), ::dup2(nowhere, 2);
  std::vector<char*> arguments{const_cast<char*>(STELE_COMMAND)};
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  ::execv(STELE_COMMAND, arguments.data());
  ::_exit(127);
}

struct row {
  const char* name;
  std::vector<std::string> words;
};
void PrintTo(const row& r, std::ostream* out) {
  *out << r.name;
}
const std::array<row, 5> commands = {{
    {"demo", {"demo"}},
    {"compare", {"compare", "--runs", "1000", "--rivals", "leveldb,lmdb", "--workload", "store"}},
    {"tape", {"tape", "record", "--operations", "100000000", "--no-bytes", "/dev/null"}},
    {"bench", {"bench", "all", "--runs", "100"}},
    {"figure", {"figure", "blurred", "--figure", "9"}},
}};

class interrupted_command : public ::testing::TestWithParam<std::tuple<row, int>> {};

TEST_P(interrupted_command, leaves_nothing_behind) {
  const auto& [command, number] = GetParam();
  scratch_directory dir;
  auto words = command.words;
  words.insert(words.end(), {"--dir", dir.file("")});
  if (command.name == std::string("bench")) words.insert(words.end(), {"--file-dir", dir.file("")});
  const pid_t pid = start(words);
  for (int i = 0; i < 3000 && entries(dir.file("")) < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // its folder, and something in it
  EXPECT_GE(entries(dir.file("")), 2u) << "it has not begun to write";
  // A terminal's ^C reaches the whole group, kill reaches one process.
  ::kill(number == SIGINT ? -pid : pid, number);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // The second signal ends a command that was shutting down in order.
  ::kill(number == SIGINT ? -pid : pid, number);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(entries(dir.file("")), 0u);
}

INSTANTIATE_TEST_SUITE_P(all, interrupted_command,
                         ::testing::Combine(::testing::ValuesIn(commands),
                                            ::testing::Values(SIGINT, SIGTERM)),
                         [](const auto& p) {
                           return std::string(std::get<0>(p.param).name) +
                                  (std::get<1>(p.param) == SIGINT ? "_by_interrupt" : "_by_kill");
                         });

// ^C may come before the command has the process that does its work.
TEST(demo_command, is_interrupted_while_it_makes_its_folder) {
  scratch_directory dir;
  const auto ended = run_shell("LD_PRELOAD=" STELE_INTERRUPT_AT_FOLDER
                               " ASAN_OPTIONS=verify_asan_link_order=0 " STELE_COMMAND
                               " demo --no-compare --dir " +
                               dir.file(""));
  EXPECT_NE(ended.status, 0) << ended.said;
  EXPECT_EQ(entries(dir.file("")), 0u);
}

TEST(demo_command, writes_json_alone_to_standard_output_and_leaves_nothing) {
  scratch_directory dir;
  FILE* const out =
      ::popen((std::string(STELE_COMMAND) + " demo --no-compare --seed 1 --json - --dir " +
               dir.file("") + " 2>/dev/null")
                  .c_str(),
              "r");
  std::string said;
  std::array<char, 4096> some;
  for (std::size_t n; (n = std::fread(some.data(), 1, some.size(), out)) != 0;)
    said.append(some.data(), n);
  EXPECT_EQ(::pclose(out), 0);
  const auto json = nlohmann::json::parse(said, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << said;
  EXPECT_TRUE(json.contains("crash"));
  EXPECT_EQ(entries(dir.file("")), 0u);
}

TEST(resize_command, refuses_to_make_a_pool_smaller) {
  scratch_directory dir;
  ASSERT_EQ(run_command("pool create " + dir.file("p") + " --size 1M").status, 0);
  const auto refused = run_command("pool resize " + dir.file("p") + " --size 64K");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.said.find("does not become smaller"), std::string::npos) << refused.said;
  EXPECT_EQ(run_command("pool check " + dir.file("p")).status, 0);
}

}  // namespace
}  // namespace stele::testing
