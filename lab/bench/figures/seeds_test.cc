// A figure that is a function of the seed: a run of each point for each seed; a figure that was
// interrupted has the seeds that were whole.
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

using testing::ElementsAre;

// One measured point, which is the seed; beside it a stated one.
result<> measure_seed(const sweep_options& o, chart& c) {
  c.complete = !o.cancelled();
  c.notes = {"as it is"};
  const std::optional<spread> mine = known(static_cast<double>(o.seed));
  c.panels = {{"seeds", "place", "the seed", {"here"}, {}}};
  c.panels[0].lines = {{"ours", "ours", false, {mine}}, {"theirs", "theirs", true, {known(7)}}};
  return {};
}

std::vector<double> runs_of(const chart& c) {
  return c.panels.at(0).lines.at(0).points.at(0)->runs;
}

TEST(over_seeds, has_a_run_for_each_seed) {
  sweep_options o = tiny_sweep();
  o.seed = 4, o.seeds = 5;
  chart c;
  c.notes = {"first"};
  ASSERT_TRUE(over_seeds(o, c, measure_seed));
  EXPECT_TRUE(c.complete);
  EXPECT_THAT(runs_of(c), ElementsAre(4, 1004, 2004, 3004, 4004));
  EXPECT_EQ(interval_of(*c.panels[0].lines[0].points[0]), (interval{4, 4004}));
  EXPECT_THAT(c.panels[0].lines[1].points[0]->runs, ElementsAre());
  EXPECT_THAT(c.notes, ElementsAre("first", "as it is", "medians of 5 seeds: 4, each 1000 on"));
}

TEST(over_seeds, keeps_whole_seeds_when_interrupted) {
  sweep_options o = tiny_sweep();
  o.seeds = 5;
  o.cancelled = [asked = 0]() mutable { return ++asked > 2; };
  chart c;
  ASSERT_TRUE(over_seeds(o, c, measure_seed));
  EXPECT_FALSE(c.complete);
  EXPECT_THAT(runs_of(c), ElementsAre(1, 1001));
  o.cancelled = [] { return true; };
  chart part;
  ASSERT_TRUE(over_seeds(o, part, measure_seed));
  EXPECT_FALSE(part.complete);
  EXPECT_THAT(runs_of(part), ElementsAre(1)) << "of the first seed what there is";
}

TEST(over_seeds, fails_as_the_measurement_does) {
  chart c;
  const auto done = over_seeds(tiny_sweep(), c, [](const sweep_options&, chart&) -> result<> {
    return std::unexpected(error{errc::io, "no tape"});
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no tape");
}

}  // namespace
}  // namespace stele::bench
