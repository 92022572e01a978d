// Table I and figure 10 of the Archapt evaluation: every point is measured, deterministically, and
// coalescing saves lines for nodes with separate texts.
#include <bench/figures/archapt_dirtiness.h>
#include <bench/figures/claims.h>
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.traced_operations = 300;
  o.traced_keys = 256;
  return o;
}

// Call it in ASSERT_NO_FATAL_FAILURE.
void expect_points_and_answers(const result<>& done, const chart& c) {
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(c.complete);
  for (const panel& p : c.panels)
    for (const series& s : p.lines) {
      ASSERT_THAT(s.points, testing::SizeIs(p.xs.size())) << p.name << ", " << s.name;
      for (const auto& point : s.points) EXPECT_TRUE(point || s.stated) << p.name << ", " << s.name;
    }
  expect_every_answer(c);
}

const panel& panel_of(const chart& c, std::string_view name) {
  const auto found = std::ranges::find(c.panels, name, &panel::name);
  EXPECT_NE(found, c.panels.end()) << name;
  return *found;
}

double at(const panel& p, std::string_view series_name, std::string_view x) {
  const auto place = static_cast<std::size_t>(std::ranges::find(p.xs, x) - p.xs.begin());
  return p.find(series_name)->points.at(place)->median;
}

TEST(archapt_dirtiness, table_has_a_mean_of_each_workload_mechanism_and_part) {
  chart c;
  ASSERT_NO_FATAL_FAILURE(
      expect_points_and_answers(archapt::measure_dirtiness_table(tiny(), c), c));
  const panel& p = c.panels.front();
  EXPECT_EQ(p.xs.size(), 7u);
  for (const series& s : p.lines)
    for (const auto& point : s.points)
      EXPECT_TRUE(!point || (point->median > 0 && point->median <= 1)) << s.name;
  EXPECT_DOUBLE_EQ(at(p, "redis", "ycsb-f"), 0.56);
}

TEST(archapt_dirtiness, a_text_beside_its_node_saves_lines) {
  chart c;
  ASSERT_NO_FATAL_FAILURE(expect_points_and_answers(archapt::measure_dirtiness(tiny(), c), c));
  const panel& lines = panel_of(c, "lines");
  EXPECT_LT(at(lines, "coalescing", "kv"), at(lines, "plain", "kv"));
  double shares = 0;
  for (const auto& point : panel_of(c, "distribution, kv").find("coalescing")->points)
    shares += point->median;
  EXPECT_NEAR(shares, 100, 1e-6);
}

TEST(archapt_dirtiness, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  unsigned told = 0;
  o.progress = [&](const std::string&) { ++told; };
  o.cancelled = [&] { return told > 2; };
  chart c;
  ASSERT_TRUE(archapt::measure_dirtiness_table(o, c));
  EXPECT_FALSE(c.complete);
  EXPECT_TRUE(c.panels.front().find("undo")->points.front());
  EXPECT_FALSE(c.panels.front().find("undo")->points.back());
}

TEST(archapt_dirtiness, reports_that_there_is_no_such_directory) {
  sweep_options o = tiny();
  o.dir = "/nowhere";
  chart c;
  EXPECT_FALSE(archapt::measure_dirtiness(o, c));
}

}  // namespace
}  // namespace stele::bench
