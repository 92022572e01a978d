// The architecture-aware evaluation: every figure has its series and points and answers all
// statements; interrupted runs keep their results; unknown names are refused; and the computed
// parts are right.
#include <bench/figures/archapt.h>
#include <bench/figures/archapt_parts.h>
#include <bench/figures/archapt_stated.h>
#include <bench/figures/claims.h>
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.archapt_keys = 512;
  o.archapt_objects = 512;
  o.archapt_threads = 2;
  o.archapt_seconds = o.seconds;
  o.archapt_crashes = 4, o.archapt_caches = 1, o.archapt_log_periods = 1;
  return o;
}

// Figure 9: undo flushes a record's lines and its log's head in each commit, and skips none.
void expect_flushes_of_a_commit(const chart& c) {
  const auto of = [&](const char* name) {
    return std::ranges::find(c.panels, name, &panel::name)->find("undo")->points.front()->median;
  };
  // half of the transactions write 16 or 17 lines and the log's head
  EXPECT_NEAR(of("flushed"), 9, 1);
  EXPECT_EQ(of("skipped"), 0);
  EXPECT_EQ(of("old values"), 0);
}

class every_archapt_figure : public testing::TestWithParam<std::string> {};

// A11
TEST_P(every_archapt_figure, yields_all_points_and_answers_all_statements) {
  const auto c = measure_archapt(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "archapt-" + GetParam()));
  ASSERT_FALSE(c->claims.empty());
  if (GetParam() == "2") return;  // a short run may show no overhead
  expect_every_answer(*c);
  expect_every_point(*c);
  if (GetParam() == "9") expect_flushes_of_a_commit(*c);
}

INSTANTIATE_TEST_SUITE_P(all, every_archapt_figure, testing::ValuesIn(archapt_figures()),
                         [](const auto& which) { return which.param; });

TEST(archapt, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  o.cancelled = [asked = 0]() mutable {
    return ++asked > 3;
  };  // called before each place and each run
  const auto c = measure_archapt("8", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
  const series* ours = c->panels.front().find("archapt-undo");
  ASSERT_NE(ours, nullptr);
  EXPECT_TRUE(ours->points.front());
  EXPECT_FALSE(ours->points.back());
}

TEST(archapt, refuses_a_figure_that_it_does_not_know) {
  expect_unknown(measure_archapt("4", tiny()), "4");
}

TEST(archapt, says_whether_what_is_due_is_met) {
  const auto at = [](double v) { return std::optional(spread{v, v, v}); };
  const panel p{"rates",
                "workload",
                "a second",
                {"x", "y"},
                {{"new", "", false, {at(240), at(98)}}, {"old", "", false, {at(200), at(100)}}}};
  const archapt::pair of{"new", "old"};
  const panel ratios = archapt::ratios_of(p, {&of, 1}, "ratios");
  ASSERT_EQ(ratios.lines.size(), 1u);
  EXPECT_DOUBLE_EQ(ratios.lines[0].points[1]->median, 0.98);
  EXPECT_THAT(archapt::verdict_of(ratios, {of, 1.05, 0.97}), HasSubstr(": met"));
  EXPECT_THAT(archapt::verdict_of(ratios, {of, 1.19, 0.97}),
              HasSubstr("from 0.98 (y) to 1.20 (x): missed"));
  EXPECT_THAT(archapt::verdict_of(ratios, {of, 1.05, 0.99}), HasSubstr(": missed"));
  EXPECT_THAT(archapt::verdict_of(ratios, {{"new", "none"}, 1.0, 1.0}), HasSubstr("not measured"));
}

TEST(archapt, logs_are_as_large_as_the_data_and_the_queue_is_short) {
  for (const archapt::mix& m : archapt::mixes) {
    sweep_options o = tiny();
    o.archapt_keys = 65536;
    const task t = archapt::task_on(o, m, 2);
    EXPECT_NEAR(static_cast<double>(2 * t.log_size_bytes) / static_cast<double>(live_bytes_of(t)),
                1, 0.01)
        << m.name;
    EXPECT_NEAR(static_cast<double>(live_bytes_of(t)) / static_cast<double>(t.archapt.cache_bytes),
                archapt::data_over_cache, 1)
        << m.name;
    EXPECT_GT(t.pool_size_bytes, 2 * t.log_count * t.log_size_bytes) << m.name;
  }
}

// Scans of 50 records on average use each object often; without scans most objects are used at most
// once.
TEST(archapt, counts_reuse_by_object) {
  sweep_options o = tiny();
  o.archapt_keys = 4096;
  const auto c = measure_archapt("3", o);
  ASSERT_TRUE(c) << c.error().message;
  const panel& p = c->panels.front();
  for (std::size_t i = 0; i < p.xs.size(); ++i) {
    double sum = 0;
    for (const series& s : p.lines) sum += s.points[i]->median;
    EXPECT_NEAR(sum, 100, 1e-6) << p.xs[i];
  }
  const auto at = [&](const char* mix) {
    return static_cast<std::size_t>(std::ranges::find(p.xs, mix) - p.xs.begin());
  };
  EXPECT_GT(p.find("4 or more")->points[at("ycsb-e")]->median, 90);
  EXPECT_GT(p.find("0 or 1")->points[at("ycsb-a")]->median, 50);
}

}  // namespace
}  // namespace stele::bench
