// The evaluation of log-structured memory: every figure has its series and points; interrupted runs
// keep their results; unknown names are refused; and the computed parts are right.
#include <bench/figures/claims.h>
#include <bench/figures/figure_test.h>
#include <bench/figures/lsnvmm.h>
#include <bench/figures/lsnvmm_parts.h>
#include <bench/figures/lsnvmm_stated.h>

namespace stele::bench {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.keys = o.large_keys = 512;
  o.phase_bytes = std::uint64_t{1} << 20;
  o.recovered_bytes = std::uint64_t{4} << 20;
  o.data_bytes = std::uint64_t{1} << 17;
  return o;
}

class every_lsnvmm_figure : public testing::TestWithParam<std::string> {};

// L12
TEST_P(every_lsnvmm_figure, yields_all_points_and_answers_all_statements) {
  const auto c = measure_lsnvmm(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "lsnvmm-" + GetParam()));
  ASSERT_FALSE(c->claims.empty());
  // Utilisations for which a pool of a few chunks has no room are left out, with a note.
  const bool may_lack_places = GetParam() == "11";
  const bool may_lack_answers = may_lack_places || GetParam() == "9" ||
                                GetParam() == "10";  // no allocator; a share of nothing
  for (const claim& k : c->claims) EXPECT_TRUE(!k.measured.empty() || may_lack_answers) << k.what;
  if (!may_lack_places) expect_every_point(*c);
}

INSTANTIATE_TEST_SUITE_P(all, every_lsnvmm_figure, testing::ValuesIn(lsnvmm_figures()),
                         [](const auto& which) { return which.param; });

TEST(lsnvmm, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  o.cancelled = [asked = 0]() mutable {
    return ++asked > 4;
  };  // called before each place and each run
  const auto c = measure_lsnvmm("8", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
  const series* ours = c->panels.front().find("all");
  ASSERT_NE(ours, nullptr);
  EXPECT_TRUE(ours->points.front());
  EXPECT_FALSE(ours->points.back());
}

// L11
TEST(lsnvmm, draws_timed_figures_under_another_charging_rule) {
  sweep_options o = tiny();
  EXPECT_EQ(lsnvmm::task_on(o, lsnvmm::patterns[0], 64).media, "delayed:500:1");
  o.charge = "standalone";
  EXPECT_EQ(lsnvmm::task_on(o, lsnvmm::patterns[0], 64).media, "delayed:500:1:standalone");
  const auto c = measure_lsnvmm("7", o);
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "lsnvmm-7-standalone"));
  EXPECT_EQ(c->charge.name, "standalone");
  EXPECT_THAT(c->setting, testing::HasSubstr("delayed:500:1:standalone"));
  const auto counted = measure_lsnvmm("8", o);
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().code, errc::invalid_argument);
  EXPECT_THAT(counted.error().message, testing::HasSubstr("no charging rule acts on lsnvmm-8"));
  EXPECT_THAT(lsnvmm_timed_figures(), ElementsAre("4", "6", "7", "11", "12"));
}

TEST(lsnvmm, refuses_a_figure_that_it_does_not_know) {
  expect_unknown(measure_lsnvmm("14", tiny()), "14");
}

TEST(lsnvmm, reads_saved_traffic_off_a_panel_of_bytes) {
  chart c;
  const auto at = [](double v) { return std::optional(spread{v, v, v}); };
  c.panels = {{"write traffic",
               "workload",
               "bytes",
               {"a", "b"},
               {{"all", "", false, {at(25), at(10)}}, {"redo", "", false, {at(100), at(100)}}}}};
  const auto claims = claims_of(c, "8", stated::lsnvmm_statements);
  ASSERT_FALSE(claims.empty());
  EXPECT_THAT(claims.front().measured, ElementsAre(DoubleEq(75), DoubleEq(90)));
}

TEST(lsnvmm, reckons_traffic_and_hits_from_sums_of_events) {
  row r;
  r.transactions = 10;
  r.events = event_counts{
      .lines = 20, .streamed_bytes = 640, .stored_bytes = 360, .map_hits = 90, .map_misses = 10};
  EXPECT_DOUBLE_EQ(lsnvmm::traffic_of(r), 64 * 2 + 64);
  EXPECT_DOUBLE_EQ(lsnvmm::stored_of(r), 100);
  EXPECT_DOUBLE_EQ(lsnvmm::hit_percent_of(r), 90);
}

// L6
TEST(lsnvmm, stages_add_one_optimisation_each) {
  std::vector<unsigned> counts;
  for (const entry& e : lsnvmm::stages(tiny())) {
    task t;
    e.own(t);
    const auto& s = t.log_structured;
    counts.push_back(s.two_layers + s.group_update + s.node_cache + s.lock_free_readers);
    EXPECT_GT(t.pool_size_bytes, 0u);
  }
  EXPECT_THAT(counts, ElementsAre(0u, 1u, 2u, 3u, 4u));
}

TEST(lsnvmm, a_pool_for_a_share_shrinks_as_the_share_grows) {
  const task t = lsnvmm::task_on(tiny(), lsnvmm::patterns[1], 4096);
  const auto half = lsnvmm::pool_for_share(t, 0.5, 0), most = lsnvmm::pool_for_share(t, 0.9, 0);
  ASSERT_TRUE(half && most);
  EXPECT_GT(*most, live_bytes_of(t));
  EXPECT_NEAR(static_cast<double>(*half - lsnvmm::chunk_bytes) /
                  static_cast<double>(*most - lsnvmm::chunk_bytes),
              0.9 / 0.5, 0.01);
}

TEST(lsnvmm, objects_that_stay_fit_a_pool_little_larger_than_they_are) {
  const auto held = lsnvmm::smallest_pool(*find_heap_workload("W1"), tiny());
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_GT(held->percent(), 0);
  EXPECT_LT(held->percent(), 25);
}

}  // namespace
}  // namespace stele::bench
