// The exact output of hand-written results, with ratios that can be checked mentally.
#include <gmock/gmock.h>
#include <sim/config_file.h>
#include <sim/result.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace stele::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

run_result small() {
  run_result r;
  r.machine.name = "kiln";
  r.machine.source = "2013";
  r.tape = "sps.tape";
  r.simulated = 1'234'567'500;
  r.add("transactions", 1000);
  r.add("l1.hits", 1234567);
  r.add("l1.miss_share", 0.03125);
  r.add("memory.energy", 1234.5678, "nJ");
  r.add("l1.misses", 999, "lines");
  return r;
}

run_result faster() {
  run_result r = small();
  r.label = "native";
  r.machine.design.name = "native";
  r.simulated = 2'469'135'000;
  r.quantities.clear();
  r.add("transactions", 500);
  r.add("l1.hits", 0);
  r.add("memory.energy", 1234.5678, "nJ");
  r.add("memory.retries", 7);
  return r;
}

// The JSON without the machine, which has its own tests.
std::string without_machine(nlohmann::ordered_json j) {
  j.erase("machine");
  if (j.contains("runs"))
    for (auto& run : j["runs"]) run.erase("machine");
  return j.dump();
}

TEST(result, table_has_sections_units_and_separated_thousands) {
  EXPECT_EQ(table_of(small()),
            "machine  kiln (2013)\n"
            "design   native\n"
            "tape     sps.tape\n"
            "time     1,234,567.500 ns\n"
            "  transactions      1,000\n"
            "l1\n"
            "  hits          1,234,567\n"
            "  miss_share      0.03125\n"
            "  misses              999  lines\n"
            "memory\n"
            "  energy        1,234.568  nJ\n");
}

TEST(result, json_is_exactly_this) {
  run_result r = small();
  r.line = {2'500, {"queue"}, {{1}, {0.5}}};
  EXPECT_EQ(without_machine(json_of(r)),
            R"({"tape":"sps.tape","simulated_ns":1234567.5,"quantities":{)"
            R"("transactions":{"value":1000,"unit":""},"l1.hits":{"value":1234567,"unit":""},)"
            R"("l1.miss_share":{"value":0.03125,"unit":""},)"
            R"("memory.energy":{"value":1234.5678,"unit":"nJ"},)"
            R"("l1.misses":{"value":999,"unit":"lines"}},)"
            R"("timeline":{"interval_ns":2.5,"names":["queue"],"samples":[[1],[0.5]]}})");
  EXPECT_EQ(json_of(r)["machine"].dump(), json_of(r.machine).dump());
}

TEST(result, csv_is_exactly_this) {
  run_result r = small(), other;
  other.label = "l3.ways=8, kiln";
  r.quantities.resize(1);
  r.line = {2'500, {"end_ns", "queue"}, {{2.5, 1}, {4, 0.5}}};
  r.histograms = {{"memory.read_latency", {{25, 25.5, 3}}}};
  const run_result both[] = {r, other};
  EXPECT_EQ(csv_of(both),
            "run,quantity,value,unit\n"
            "native,simulated_ns,1234567.5,ns\n"
            "native,transactions,1000,\n"
            "\"l3.ways=8, kiln\",simulated_ns,0,ns\n");
  EXPECT_EQ(csv_of_epochs(both), "run,end_ns,queue\nnative,2.5,1\nnative,4,0.5\n");
  EXPECT_EQ(csv_of_histograms(both),
            "run,quantity,from_ns,below_ns,count\nnative,memory.read_latency,25,25.5,3\n");
  EXPECT_EQ(json_of(r)["histograms"].dump(), R"({"memory.read_latency":[[25,25.5,3]]})");
}

TEST(result, has_no_time_line_that_was_not_asked_for) {
  EXPECT_FALSE(json_of(small()).contains("timeline"));
}

TEST(result, prints_what_is_no_number_as_such) {
  run_result r = small();
  r.add("x.none", std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(json_of(r)["quantities"]["x.none"]["value"].is_null());
  EXPECT_THAT(table_of(r), HasSubstr("  none                  -\n"));
}

TEST(result, prints_numbers_beyond_whole_doubles_and_below_zero) {
  run_result r = small();
  r.quantities.clear();
  r.add("a", -1234567);
  r.add("b", 1e300);
  r.add("c", -123);
  EXPECT_THAT(table_of(r), HasSubstr("-1,234,567"));
  EXPECT_THAT(table_of(r), HasSubstr("-123"));
  EXPECT_THAT(table_of(r), Not(HasSubstr("-,")));
  EXPECT_EQ(json_of(r)["quantities"]["b"]["value"], 1e300);
}

TEST(result, is_found_by_path) {
  const run_result r = small();
  ASSERT_NE(find(r, "l1.misses"), nullptr);
  EXPECT_EQ(find(r, "l1.misses")->value, 999);
  EXPECT_EQ(find(r, "l1.misse"), nullptr);
}

TEST(results, stand_side_by_side_with_ratios_to_the_first) {
  run_result first = small();
  first.label = "kiln";
  const run_result both[] = {first, faster()};
  EXPECT_EQ(table_of_all(both),
            "machine  kiln (2013)\n"
            "tape     sps.tape\n"
            "                                kiln     native  ratio\n"
            "time            ns     1,234,567.500  2,469,135  2.000\n"
            "  transactions                 1,000        500  0.500\n"
            "l1\n"
            "  hits                     1,234,567          0  0.000\n"
            "  miss_share                 0.03125          -      -\n"
            "  misses        lines            999          -      -\n"
            "memory\n"
            "  energy        nJ         1,234.568  1,234.568  1.000\n"
            "  retries                          -          7      -\n");
}

TEST(results, carry_ratios_in_their_json) {
  const run_result both[] = {small(), faster()};
  const auto j = json_of_all(both);
  EXPECT_EQ(j["runs"][0]["ratios"]["l1.hits"], 1);
  EXPECT_EQ(j["runs"][1]["ratios"].dump(), R"({"simulated_ns":2,"transactions":0.5,"l1.hits":0,)"
                                           R"("memory.energy":1,"memory.retries":null})");
  EXPECT_EQ(j["runs"][1]["label"], "native");
}

TEST(results, have_no_ratio_to_nothing) {
  run_result none = small();
  none.quantities = {{"l1.hits", 0, ""}};
  const run_result both[] = {none, small()};
  EXPECT_TRUE(json_of_all(both)["runs"][1]["ratios"]["l1.hits"].is_null());
}

run_result timed(picoseconds simulated, double hits) {
  run_result r;
  r.simulated = simulated;
  r.add("l3.hits", hits, "lines");
  return r;
}

TEST(sweeps, have_a_row_for_each_value_and_ratios_within_it) {
  const sweep s{"l3.ways",
                {"8", "16"},
                {"native", "kiln"},
                {timed(1000, 4), timed(2000, 2), timed(3000, 6), timed(3000, 9)}};
  EXPECT_EQ(table_of(s, "simulated_ns"),
            "simulated_ns, ns\n"
            "l3.ways  native  kiln  ratio\n"
            "8             1     2  2.000\n"
            "16            3     3  1.000\n");
  EXPECT_EQ(table_of(s, "l3.hits"),
            "l3.hits, lines\n"
            "l3.ways  native  kiln  ratio\n"
            "8             4     2  0.500\n"
            "16            6     9  1.500\n");
}

TEST(sweeps, of_one_column_have_ratios_to_the_first_row) {
  const sweep s{"l3.ways", {"8", "16"}, {"native"}, {timed(2000, 4), timed(1000, 5)}};
  EXPECT_EQ(table_of(s, "simulated_ns"),
            "simulated_ns, ns\n"
            "l3.ways  native  ratio\n"
            "8             2  1.000\n"
            "16            1  0.500\n");
}

TEST(sweeps, that_were_interrupted_show_what_they_have) {
  const sweep s{
      "l3.ways", {"8", "16"}, {"native", "kiln"}, {timed(1000, 4), timed(2000, 2), timed(3000, 6)}};
  EXPECT_EQ(table_of(s, "simulated_ns"),
            "simulated_ns, ns\n"
            "l3.ways  native  kiln  ratio\n"
            "8             1     2  2.000\n"
            "16            3\n");
  EXPECT_EQ(json_of(s)["runs"].size(), 3U);
  EXPECT_EQ(json_of(sweep{"l3.ways", {"8"}, {"native"}, {}})["runs"].size(), 0U);
}

}  // namespace
}  // namespace stele::sim
