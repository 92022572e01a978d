// The architecture-aware evaluation with SQLite as its host: its figures are whole, and the others
// are refused.
#include <bench/figures/archapt.h>
#include <bench/figures/figure_test.h>

namespace stele::bench {
namespace {

sweep_options tiny() {
  return tiny_hosted_sweep("sqlite");
}

class every_hosted_figure : public testing::TestWithParam<std::string> {};

// A12
TEST_P(every_hosted_figure, yields_all_points) {
  const auto c = measure_archapt(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "archapt-" + GetParam() + "-sqlite"));
  EXPECT_THAT(c->notes, testing::Contains(testing::HasSubstr("SQL transactions of SQLite")));
  if (GetParam() != "2") expect_every_point(*c);  // a short run may show no overhead
}

INSTANTIATE_TEST_SUITE_P(all, every_hosted_figure,
                         testing::ValuesIn(archapt_hosted_figures("sqlite")),
                         [](const auto& which) { return which.param; });

TEST(archapt_host, dirtiness_is_of_the_bytes_that_change) {
  const auto c = measure_archapt("10", tiny());
  ASSERT_TRUE(c) << c.error().message;
  const panel& home = *std::ranges::find(c->panels, "dirtiness of home", &panel::name);
  for (const auto& point : home.find("plain")->points) {
    EXPECT_GT(point->median, 0.05);
    EXPECT_LT(point->median, 0.99);
  }
}

TEST(archapt_host, refuses_figures_that_it_does_not_run) {
  const auto c = measure_archapt("9", tiny());
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().message, testing::HasSubstr("choose one of 2, 7, 8, 10"));
}

}  // namespace
}  // namespace stele::bench
