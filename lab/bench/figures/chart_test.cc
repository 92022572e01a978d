// Charts: derived panels, claims, printed tables and JSON.
#include <bench/figures/chart.h>
#include <bench/figures/claims.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace stele::bench {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

std::optional<spread> at(double median) {
  return spread{median / 2, median, median * 2};
}

// base has 100 and 200, blurred 150 and no value, none 300 and 300 transactions per second.
chart small_chart() {
  chart c;
  c.name = "blurred-9";
  c.title = "Figure 9: a title";
  c.panels = {{"throughput", "workload", "transactions a second", {"sps", "hash"}, {}, true}};
  c.panels[0].lines = {{"base", "base (BASE)", false, {at(100), at(200)}},
                       {"blurred", "blurred (BPPM)", false, {at(150), std::nullopt}},
                       {"none", "none (NP)", true, {at(300), at(300)}}};
  return c;
}

TEST(panel, relative_to_a_series_leaves_out_what_was_not_measured) {
  const panel p = relative_to(small_chart().panels[0], "base", "normalised");
  EXPECT_EQ(p.name, "normalised");
  EXPECT_EQ(p.find("blurred")->points[0]->median, 1.5);
  EXPECT_EQ(p.find("blurred")->points[0]->min, 0.75);
  EXPECT_FALSE(p.find("blurred")->points[1].has_value());
  const panel none = relative_to(small_chart().panels[0], "nonesuch", "normalised");
  EXPECT_FALSE(none.find("base")->points[0].has_value());
}

spread of_runs(std::vector<double> runs) {
  return spread_of(std::move(runs));
}

// base and blurred in five runs side by side; the machine was slow in the last one.
chart chart_of_runs() {
  chart c = small_chart();
  c.panels[0].lines[0].points = {of_runs({100, 101, 102, 103, 50}), at(200)};
  c.panels[0].lines[1].points = {of_runs({150, 151, 153, 154, 75}), std::nullopt};
  return c;
}

TEST(panel, relative_to_a_series_has_the_interval_of_the_ratio_of_medians) {
  const panel p = relative_to(chart_of_runs().panels[0], "base", "normalised");
  EXPECT_TRUE(p.ratios);
  const auto& ratio = p.find("blurred")->points[0];
  EXPECT_DOUBLE_EQ(ratio->median, 151.0 / 101);
  const auto known_to = interval_of(*ratio);
  ASSERT_TRUE(known_to);
  EXPECT_NEAR(known_to->low, 1.495, 0.01);
  EXPECT_NEAR(known_to->high, 1.5, 0.01);
  EXPECT_FALSE(interval_of(*p.find("none")->points[0])->low < 1) << "none has no runs";
}

TEST(panel, transposed_swaps_axis_and_series) {
  const panel p = transposed(small_chart().panels[0], "system");
  EXPECT_THAT(p.xs, ElementsAre("base (BASE)", "blurred (BPPM)", "none (NP)"));
  EXPECT_EQ(p.find("sps")->points[1]->median, 150);
  EXPECT_FALSE(p.find("hash")->points[1].has_value());
}

TEST(claims, read_the_statements_of_their_figure_off_the_chart) {
  const auto claims = claims_of(small_chart(), "9");
  ASSERT_EQ(claims.size(), 10u);
  EXPECT_EQ(claims[0].stated, "62.1 %");
  EXPECT_THAT(claims[0].measured,
              ElementsAre(DoubleNear(66.67, 0.01), DoubleNear(33.33, 0.01)));  // base below none
  EXPECT_THAT(claims[1].measured, ElementsAre(DoubleNear(50, 1e-9)));          // blurred over base
  EXPECT_THAT(claims[2].measured, ElementsAre());  // the chart has no xil
  // the share of the gap to none
  EXPECT_THAT(claims[9].measured, ElementsAre(DoubleNear(25, 1e-9)));
}

TEST(claims, have_the_interval_of_their_mean) {
  const auto claims = claims_of(chart_of_runs(), "9");
  ASSERT_TRUE(claims[1].of_mean);  // blurred over base
  EXPECT_NEAR(claims[1].of_mean->low, 49.5, 0.5);
  EXPECT_NEAR(claims[1].of_mean->high, 50, 0.5);
  EXPECT_FALSE(claims_of(small_chart(), "9")[1].of_mean) << "no point has runs";
}

TEST(claims, are_summed_up_in_words) {
  EXPECT_EQ(summary_of({"", "", "%", {20}, interval{18.24, 23}}), "20.0 % (18.2..23.0)");
  EXPECT_EQ(summary_of({"", "", "%", {}}), "-");
  EXPECT_EQ(summary_of({"", "", "us", {3.2}}), "3.20 us");
  EXPECT_EQ(summary_of({"", "", "%", {20, 10, 60}}), "10.0 % to 60.0 %, mean 30.0 %");
}

TEST(chart, table_keeps_stated_numbers_apart) {
  chart c = small_chart();
  c.claims = claims_of(c, "9");
  c.notes = {"one of them"};
  const std::string table = table_of(c);
  EXPECT_THAT(table, HasSubstr("none (NP) (stated)"));
  EXPECT_THAT(table, HasSubstr("stated there"));
  EXPECT_THAT(table, HasSubstr("measured here"));
  EXPECT_THAT(table, HasSubstr("note: one of them"));
}

TEST(chart, says_its_charging_rule_if_it_has_one) {
  chart c = small_chart();
  EXPECT_THAT(table_of(c), testing::Not(HasSubstr("charging rule")));
  EXPECT_FALSE(json_of(c).contains("charge"));
  c.charge = {"once", "streams pay once"};
  EXPECT_THAT(table_of(c), HasSubstr("\ncharging rule once: streams pay once\n"));
  EXPECT_EQ(json_of(c)["charge"]["name"], "once");
  EXPECT_EQ(json_of(c)["charge"]["meaning"], "streams pay once");
}

TEST(chart, table_has_intervals_of_ratios_and_json_those_of_all) {
  chart c = chart_of_runs();
  c.panels.push_back(relative_to(c.panels[0], "base", "normalised"));
  const std::string table = table_of(c);
  EXPECT_THAT(table, HasSubstr("1.50 (1.50..1.50)"));
  EXPECT_THAT(table, testing::Not(HasSubstr("151 (")));
  const nlohmann::json j = json_of(c);
  const auto& points = j["panels"][0]["series"][1]["points"];
  EXPECT_EQ(points[0]["runs"], 5);
  EXPECT_EQ(points[0]["interval"]["low"], 75);
  EXPECT_EQ(points[0]["interval"]["high"], 154);
  EXPECT_TRUE(j["panels"][0]["series"][2]["points"][0]["interval"].is_null());
}

TEST(chart, tells_of_other_work_on_the_machine) {
  chart c = small_chart();
  EXPECT_TRUE(json_of(c)["load"].is_null());
  c.load = machine_load{.busy = 0.7};
  EXPECT_THAT(table_of(c), HasSubstr("70 % of the cores' time"));
  EXPECT_EQ(json_of(c)["load"]["disturbed"], true);
}

TEST(chart, json_has_every_measured_point_and_no_other) {
  chart c = small_chart();
  c.panels[0].lines[1].points[1] = spread{1, std::nan(""), 1};  // a ratio to nothing
  const nlohmann::json j = json_of(c);
  EXPECT_EQ(j["name"], "blurred-9");
  EXPECT_EQ(j["complete"], true);
  const auto& series = j["panels"][0]["series"];
  EXPECT_EQ(series[0]["points"].size(), 2u);
  EXPECT_EQ(series[1]["points"].size(), 1u);
  EXPECT_EQ(series[1]["points"][0]["x"], "sps");
  EXPECT_EQ(series[1]["points"][0]["median"], 150);
  EXPECT_EQ(series[2]["stated"], true);
}

}  // namespace
}  // namespace stele::bench
