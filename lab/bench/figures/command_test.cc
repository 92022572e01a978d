// The command `stele figure` as a user runs it: its files, its errors, and pictures that cannot be
// drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace stele::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct outcome {
  int status = -1;
  std::string said;  // standard output and standard error
};

outcome run(const std::string& command) {
  outcome o;
  FILE* const out = ::popen((command + " 2>&1").c_str(), "r");
  if (out == nullptr) return o;
  std::array<char, 4096> some;
  for (std::size_t n; (n = std::fread(some.data(), 1, some.size(), out)) != 0;)
    o.said.append(some.data(), n);
  const int ended = ::pclose(out);
  o.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return o;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class figure_command : public testing::Test {
 protected:
  figure_command() { fs::create_directories(dir_); }
  ~figure_command() override { fs::remove_all(dir_); }

  const std::string command_ = STELE_COMMAND " figure blurred";
  const std::string plot_ = STELE_SOURCE_DIR "/tools/plot";
  const fs::path dir_ =
      fs::path(testing::TempDir()) / ("stele-figures-" + std::to_string(::getpid()));
};

TEST_F(figure_command, writes_table_json_and_picture) {
  const outcome o = run(command_ + " --figure 14 --quick --out " + dir_.string());
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_THAT(o.said, HasSubstr("49.8 us"));
  EXPECT_THAT(text_of(dir_ / "blurred-14.txt"), HasSubstr("measured here"));
  const auto chart = nlohmann::json::parse(text_of(dir_ / "blurred-14.json"));
  EXPECT_EQ(chart["name"], "blurred-14");
  if (o.said.find("no picture") != std::string::npos) GTEST_SKIP() << o.said;
  EXPECT_EQ(text_of(dir_ / "blurred-14.png").substr(1, 3), "PNG");
}

TEST_F(figure_command, refuses_what_it_does_not_know) {
  const outcome figure = run(command_ + " --figure 8 --quick");
  EXPECT_NE(figure.status, 0);
  EXPECT_THAT(figure.said, HasSubstr("there is no figure '8'"));
  const outcome dir = run(command_ + " --figure 9 --quick --dir " + (dir_ / "nonesuch").string());
  EXPECT_EQ(dir.status, 1);
  EXPECT_THAT(dir.said, HasSubstr("is not a directory"));
}

TEST_F(figure_command, plot_says_that_matplotlib_is_missing) {
  const outcome o =
      run("/usr/bin/python3 -S " + plot_ + " chart.json chart.png");  // -S: no packages
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.said, HasSubstr("python3-matplotlib is not installed"));
}

}  // namespace
}  // namespace stele::bench
