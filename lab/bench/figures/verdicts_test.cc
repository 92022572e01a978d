// One verdict a claim: intervals that meet, rules, what was not measured; and the tables of claims
// beside those of statements.
#include <bench/figures/archapt_dirtiness.h>
#include <bench/figures/archapt_stated.h>
#include <bench/figures/claimed.h>
#include <bench/figures/dp2_stated.h>
#include <bench/figures/kiln_stated.h>
#include <bench/figures/lsnvmm_stated.h>
#include <bench/figures/stated.h>
#include <bench/figures/verdicts.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace stele::bench {
namespace {

using testing::HasSubstr;

verdict of(std::vector<measured_reading> readings) {
  return {"kiln",
          "9",
          "small: Kiln has 0.91 of native's throughput",
          "times",
          {0.905, 0.915},
          std::move(readings)};
}

TEST(verdict, agrees_only_where_the_intervals_meet) {
  EXPECT_EQ(of({{"", 0.94, interval{0.915, 0.96}}}).words(), "agrees");
  EXPECT_EQ(of({{"", 0.94, interval{0.916, 0.96}}}).words(), "does not hold");
  EXPECT_EQ(of({{"", 0.88, interval{0.85, 0.90}}}).words(), "does not hold");
  EXPECT_EQ(of({{"", 0.91, {}}}).words(), "agrees") << "a value without an interval";
  EXPECT_EQ(of({{"", 0.94, {}}}).words(), "does not hold");
  EXPECT_EQ(of({}).words(), "not measured");
}

TEST(verdict, names_the_rule_under_which_a_claim_holds) {
  EXPECT_EQ(of({{"", 0.91, {}}, {"long queues", 0.912, {}}}).words(), "agrees");
  EXPECT_EQ(of({{"", 0.8, {}}, {"none", 0.7, {}}, {"long queues", 0.912, {}}}).words(),
            "holds under long queues");
  EXPECT_EQ(of({{"", 0.8, {}}, {"long queues", 0.7, {}}}).words(), "does not hold");
  EXPECT_EQ(of({{"long queues", 0.7, {}}}).words(), "does not hold");
}

TEST(verdict, of_a_direction_is_that_of_all_of_the_interval_or_part_of_it) {
  verdict v{"kiln", "9", "it gains", "%", expected::gains, {{"", -1, interval{-3, -0.5}}}};
  EXPECT_EQ(v.words(), "does not hold");
  v.readings[0].within = interval{-3, 0.5};
  EXPECT_EQ(v.words(), "agrees") << "it cannot be told from none";
}

// Kiln in five seeds over native in five.
chart kiln_chart() {
  chart c;
  c.panels = {{"small, 16 threads", "workload", "over native's", {"sps", "mean"}, {}, true, true}};
  const auto at = [](double v) { return std::optional(spread_of({v, v + 0.01, v, v, v - 0.01})); };
  c.panels[0].lines = {{"kiln", "kiln", false, {at(0.9), at(0.92)}},
                       {"crlog", "crlog", false, {at(0.6), at(0.61)}}};
  return c;
}

TEST(verdicts, are_read_off_a_chart) {
  const auto all = verdicts_of(kiln_chart(), "kiln", "9", stated::kiln_statements);
  ASSERT_EQ(all.size(), 9u);
  ASSERT_EQ(all[0].readings.size(), 1u);
  EXPECT_NEAR(all[0].readings[0].value, 0.92, 1e-9);
  EXPECT_EQ(all[0].words(), "agrees") << "0.91 to 0.93 meets 0.905 to 0.915";
  EXPECT_EQ(all[1].words(), "not measured") << "the chart has no large elements";
  EXPECT_EQ(all[2].words(), "does not hold") << "1.51 over crlog, 1.55 is the least";
  const std::string table = table_of(all);
  EXPECT_THAT(table, HasSubstr("0.905..0.915 times  0.92 (0.91..0.93)"));
}

TEST(verdicts, under_another_setting_are_those_of_its_rule) {
  const auto all =
      verdicts_of(kiln_chart(), "kiln", "9", stated::kiln_statements, "the host redis");
  EXPECT_EQ(all[0].words(), "holds under the host redis");
}

TEST(verdicts, of_what_was_timed_on_a_busy_machine_say_so) {
  for (const bool of_seeds : {false, true}) {
    chart c = kiln_chart();
    c.of_seeds = of_seeds;
    c.verdicts = verdicts_of(c, "kiln", "9", stated::kiln_statements);
    set_load(c, machine_load{.busy = 0.7});
    EXPECT_EQ(c.verdicts[0].words(), of_seeds ? "agrees" : "agrees, on a busy machine");
    EXPECT_EQ(c.verdicts[1].words(), "not measured");
    set_load(c, machine_load{});
    EXPECT_EQ(c.verdicts[0].words(), "agrees");
  }
}

TEST(verdicts, of_several_charts_are_one_a_claim) {
  auto all = unmeasured_verdicts("kiln", "9");
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all[0].words(), "not measured");
  merge(all, verdicts_of(kiln_chart(), "kiln", "9", stated::kiln_statements));
  merge(all, unmeasured_verdicts("kiln", "6"));
  EXPECT_EQ(all.size(), 11u);
  EXPECT_EQ(all[0].words(), "agrees");
}

TEST(verdicts, are_the_same_after_json) {
  for (const verdict& v : {of({{"", 0.94, interval{0.9, 0.96}, true}, {"other", 2, {}}}),
                           verdict{"dp2", "6", "it grows", "%", expected::gains, {}}}) {
    const nlohmann::json j = json_of(v);
    const auto back = verdict_in(nlohmann::json::parse(j.dump()));
    ASSERT_TRUE(back);
    EXPECT_EQ(json_of(*back), j);
    EXPECT_EQ(back->words(), v.words());
  }
  EXPECT_FALSE(verdict_in(nlohmann::json::parse(R"({"paper": "kiln", "figure": 9})")));
  EXPECT_FALSE(verdict_in(nlohmann::json(3)));
}

TEST(verdicts, of_two_measurements_are_compared_reading_by_reading) {
  const auto now = {of({{"", 0.94, interval{0.9, 0.96}}, {"other", 2, {}}, {"new", 1, {}}})};
  const auto near = {of({{"", 0.97, interval{0.95, 1}}, {"other", 2, {}}, {"old", 1, {}}})};
  EXPECT_EQ(comparison_of(now, near),
            "2 readings of claims measured then and now; the intervals of 0 do not meet\n");
  const auto far = {of({{"", 0.99, interval{0.98, 1}}, {"other", 2.1, {}}})};
  const std::string apart = comparison_of(now, far);
  EXPECT_THAT(apart, HasSubstr("the intervals of 2 do not meet\n"));
  EXPECT_THAT(apart, testing::ContainsRegex("0.99 .0.98..1.00. +0.94 .0.90..0.96."));
  EXPECT_THAT(apart, testing::ContainsRegex("other +2.10 +2.00"));
  EXPECT_THAT(comparison_of(now, {}), testing::StartsWith("0 readings"));
}

// What each publication's text states, and with what host.
std::map<std::string, std::vector<stated::statement>> all_statements() {
  std::map<std::string, std::vector<stated::statement>> all;
  const auto add = [&](const char* paper, std::span<const stated::statement> some) {
    all[paper].insert(all[paper].end(), some.begin(), some.end());
  };
  add("blurred", stated::statements);
  add("lsnvmm", stated::lsnvmm_statements);
  add("dp2", stated::dp2_statements);
  add("kiln", stated::kiln_statements);
  add("archapt", stated::archapt_statements);
  for (const char* host : {"", "sqlite", "redis"})
    add("archapt", archapt::dirtiness_statements(host));
  return all;
}

TEST(claimed, has_a_claim_for_each_statement_and_a_statement_for_each_reading) {
  using key = std::pair<std::string, std::string>;
  for (const auto& [paper, statements] : all_statements()) {
    std::set<key> of_text, read;
    for (const stated::statement& s : statements)
      if (s.stated != std::string_view("unpredictable")) of_text.emplace(s.figure, s.what);
    for (const published_claim& c : claimed_by(paper))
      for (const claim_reading& r : c.readings)
        if (r.what != nullptr) read.emplace(c.figure, r.what);
    EXPECT_EQ(read, of_text) << paper;
  }
}

TEST(claimed, has_each_sentence_once_and_a_reading_of_it) {
  for (const char* paper : {"blurred", "lsnvmm", "archapt", "dp2", "kiln"}) {
    std::set<std::pair<std::string, std::string>> sentences;
    EXPECT_FALSE(claimed_by(paper).empty());
    for (const published_claim& c : claimed_by(paper)) {
      EXPECT_TRUE(sentences.emplace(c.figure, c.sentence).second) << c.sentence;
      EXPECT_LE(c.expected.low, c.expected.high) << c.sentence;
      EXPECT_NE(c.readings[0].what, nullptr) << c.sentence;
      std::set<std::string> rules;
      for (const claim_reading& r : c.readings)
        if (r.what != nullptr) {
          EXPECT_TRUE(rules.insert(r.rule).second) << c.sentence << ", " << r.rule;
        }
    }
  }
  EXPECT_TRUE(claimed_by("another").empty());
}

}  // namespace
}  // namespace stele::bench
