// The commands `stele figure` and `stele report` as a user runs them: their files, their errors, a
// set of figures that goes on where it ended, and pictures that cannot be drawn.
#include <bench/figures/archapt.h>
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
using testing::Not;

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

  void expect_comparisons(const std::string& report) const;

  const std::string command_ = STELE_COMMAND " figure blurred";
  // Counts, and takes no time.
  const std::string reuse_ = STELE_COMMAND " figure archapt --figure 3 --quick --out ";
  const std::string plot_ = STELE_SOURCE_DIR "/tools/plot";
  const fs::path dir_ =
      fs::path(testing::TempDir()) / ("stele-figures-" + std::to_string(::getpid()));
};

TEST_F(figure_command, writes_table_json_and_picture) {
  const outcome o = run(reuse_ + dir_.string());
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_THAT(o.said, HasSubstr("78 % (once or twice)"));
  EXPECT_THAT(text_of(dir_ / "archapt-3.txt"), HasSubstr("measured here"));
  const auto chart = nlohmann::json::parse(text_of(dir_ / "archapt-3.json"));
  EXPECT_EQ(chart["name"], "archapt-3");
  EXPECT_EQ(chart["origin"]["settings"]["seeds"], 2) << "of --quick";
  EXPECT_EQ(chart["panels"][0]["series"][0]["points"][0]["runs"], 2);
  EXPECT_TRUE(chart["load"].contains("steal"));
  if (o.said.find("no picture") != std::string::npos) GTEST_SKIP() << o.said;
  EXPECT_EQ(text_of(dir_ / "archapt-3.png").substr(1, 3), "PNG");
}

// A complete figure with the origin of this command is kept, and no other one.
TEST_F(figure_command, all_measures_what_the_folder_lacks) {
  const outcome first = run(reuse_ + dir_.string());
  ASSERT_EQ(first.status, 0) << first.said;
  const auto measured = nlohmann::json::parse(text_of(dir_ / "archapt-3.json"));
  EXPECT_TRUE(measured["origin"]["machine"].contains("processor"));
  EXPECT_THAT(measured["origin"]["command"], HasSubstr("stele figure archapt --figure 3 --quick"));
  for (const std::string& number : archapt_figures()) {
    auto one = measured;
    one["name"] = "archapt-" + number;
    one["panels"] = nlohmann::json::array();
    std::ofstream(dir_ / ("archapt-" + number + ".json")) << one;
    std::ofstream(dir_ / ("archapt-" + number + ".png")) << "a picture";
  }
  const std::string all = STELE_COMMAND " figure all archapt --quick --out " + dir_.string();
  for (const char* change : {"complete", "program", "nothing"}) {
    auto other = measured;
    if (*change == 'c') other["complete"] = false;
    if (*change == 'p') other["origin"]["build"]["program"] = "another";
    std::ofstream(dir_ / "archapt-3.json") << other;
    const outcome o = run(all);
    EXPECT_EQ(o.status, 0) << o.said;
    EXPECT_THAT(o.said, HasSubstr(*change == 'n' ? "0 measured, 9 kept" : "1 measured, 8 kept"));
  }
  std::ofstream(dir_ / "archapt-3.json") << "{\"complete\": tr";  // cut off
  const outcome report = run(STELE_COMMAND " report archapt --quick --out " + dir_.string());
  EXPECT_EQ(report.status, 0) << report.said;
  EXPECT_THAT(report.said, HasSubstr("1 measured, 8 kept"));
  EXPECT_THAT(text_of(dir_ / "report.html"), HasSubstr("id=\"archapt-IV\""));
}

// A report in the folder `page` with itself, with other values, and with no report.
void figure_command::expect_comparisons(const std::string& report) const {
  const std::string again = report + (dir_ / "again").string() + " --against ";
  const outcome same = run(again + (dir_ / "page").string());
  EXPECT_EQ(same.status, 0) << same.said;
  EXPECT_THAT(same.said, HasSubstr("the intervals of 0 do not meet"));
  auto then = nlohmann::json::parse(text_of(dir_ / "page" / "claims.json"));
  for (auto& claim : then["claims"])
    for (auto& r : claim["readings"]) r["value"] = 1e9, r["interval"] = nullptr;
  std::filesystem::create_directory(dir_ / "then");
  std::ofstream(dir_ / "then" / "claims.json") << then;
  const outcome other = run(again + (dir_ / "then").string());
  EXPECT_EQ(other.status, 0) << other.said;
  EXPECT_THAT(other.said, Not(HasSubstr("the intervals of 0 do not meet")));
  EXPECT_THAT(other.said, HasSubstr("1000.000 M"));
  std::ofstream(dir_ / "then" / "claims.json") << "{}";
  for (const char* none : {"then", "nowhere"}) {
    const outcome o = run(again + (dir_ / none).string());
    EXPECT_EQ(o.status, 1);
    EXPECT_THAT(o.said, HasSubstr("name the --out of a report"));
  }
}

TEST_F(figure_command, report_is_a_page_of_a_folder) {
  const std::string report = STELE_COMMAND " report --from " + dir_.string() + " --out ";
  const outcome empty = run(report + (dir_ / "page").string());
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.said, HasSubstr("has no figure"));
  ASSERT_EQ(run(reuse_ + dir_.string()).status, 0);
  const outcome o = run(report + (dir_ / "page").string());
  EXPECT_EQ(o.status, 0) << o.said;
  EXPECT_THAT(o.said, HasSubstr("1 figure, 8 missing"));
  EXPECT_THAT(o.said, HasSubstr("claim of the text"));
  const auto all = nlohmann::json::parse(text_of(dir_ / "page" / "claims.json"))["claims"];
  EXPECT_GT(all.size(), 40u);
  for (const auto& claim : all)
    EXPECT_EQ(claim["verdict"] == "not measured", claim["figure"] != "3") << claim;
  EXPECT_THAT(text_of(dir_ / "page" / "report.html"), HasSubstr("id=\"archapt-3\""));
  expect_comparisons(report);
  EXPECT_EQ(run(report + (dir_ / "archapt-3.json").string()).status, 1) << "no directory";
  EXPECT_EQ(run(STELE_COMMAND " report --from /none --out " + dir_.string()).status, 1);
}

TEST_F(figure_command, artefact_has_the_figures_that_claims_are_about) {
  const std::string list = STELE_COMMAND " artefact --list --out " + dir_.string();
  const outcome claims = run(list);
  EXPECT_EQ(claims.status, 0);
  for (const char* name : {"blurred-16 ", "blurred-16-once ", "lsnvmm-7-standalone ",
                           "dp2-9-waits ", "kiln-9 ", "archapt-3 "})
    EXPECT_THAT(claims.said, HasSubstr(name));
  EXPECT_THAT(claims.said, Not(HasSubstr("kiln-sensitivity")));
  EXPECT_THAT(claims.said, Not(HasSubstr("redis")));
  const outcome full = run(list + " --full");
  EXPECT_THAT(full.said, HasSubstr("kiln-sensitivity"));
  EXPECT_THAT(full.said, HasSubstr("archapt-7-redis"));
  EXPECT_NE(run(STELE_COMMAND " artefact").status, 0) << "without --out";
}

TEST_F(figure_command, refuses_what_it_does_not_know) {
  const outcome figure = run(command_ + " --figure 8 --quick");
  EXPECT_NE(figure.status, 0);
  EXPECT_THAT(figure.said, HasSubstr("there is no figure '8'"));
  const outcome dir = run(command_ + " --figure 9 --quick --dir " + (dir_ / "nonesuch").string());
  EXPECT_EQ(dir.status, 1);
  EXPECT_THAT(dir.said, HasSubstr("is not a directory"));
}

// A rule of another publication, and a figure that no rule acts on.
TEST_F(figure_command, refuses_a_charging_rule_that_does_not_apply) {
  const outcome other = run(STELE_COMMAND " figure lsnvmm --figure 7 --quick --charge once");
  EXPECT_NE(other.status, 0);
  EXPECT_THAT(other.said, HasSubstr("there is no charging rule 'once'; choose one of together, "
                                    "standalone"));
  const outcome simulated = run(STELE_COMMAND " figure dp2 --figure 5 --quick --charge waits");
  EXPECT_EQ(simulated.status, 1);
  EXPECT_THAT(simulated.said, HasSubstr("no charging rule acts on dp2-5"));
  EXPECT_THAT(run(STELE_COMMAND " figure dp2 --help").said, HasSubstr("--charge"));
  EXPECT_THAT(run(STELE_COMMAND " figure kiln --help").said, Not(HasSubstr("--charge")));
}

// Figures under another rule have files of their own, which a report with --charges expects.
TEST_F(figure_command, charging_rules_have_figures_of_their_own) {
  const outcome o =
      run(STELE_COMMAND " figure dp2 --figure 7 --quick --runs 1 --charge waits --out " +
          dir_.string());
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_THAT(o.said, HasSubstr("charging rule waits: a fence waits"));
  const auto chart = nlohmann::json::parse(text_of(dir_ / "dp2-7-waits.json"));
  EXPECT_EQ(chart["name"], "dp2-7-waits");
  EXPECT_EQ(chart["charge"]["name"], "waits");
  EXPECT_EQ(chart["origin"]["settings"]["charge"], "waits");
  EXPECT_THAT(chart["origin"]["command"], HasSubstr("--figure 7 --charge waits"));
  const std::string page = (dir_ / "page").string();
  const std::string report = STELE_COMMAND " report dp2 --from " + dir_.string() + " --out " + page;
  EXPECT_THAT(run(report).said, HasSubstr("1 figure, 8 missing"));
  EXPECT_THAT(run(report + " --charges").said, HasSubstr("1 figure, 10 missing"));
  EXPECT_THAT(text_of(dir_ / "page" / "report.html"),
              HasSubstr("<strong>Charging rule waits</strong>: a fence waits"));
}

TEST_F(figure_command, plot_says_that_matplotlib_is_missing) {
  const outcome o =
      run("/usr/bin/python3 -S " + plot_ + " chart.json chart.png");  // -S: no packages
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.said, HasSubstr("python3-matplotlib is not installed"));
}

}  // namespace
}  // namespace stele::bench
