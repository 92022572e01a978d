// The redrawn evaluation: every figure yields its points, runs that are cut short keep theirs, strange names are refused.
#include <bench/figures/blurred.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace stele::bench {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

sweep_options tiny() {
  sweep_options o;
  o.dir = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : testing::TempDir();
  o.runs = 1;
  o.seconds = 0.005;
  o.keys = o.large_keys = 1024;
  o.warm_up_transactions = 200;
  return o;
}

class every_figure : public testing::TestWithParam<std::string> {};

TEST_P(every_figure, yields_all_points_and_answers_all_statements) {
  const auto c = measure_blurred(GetParam(), tiny());
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->name, "blurred-" + GetParam());
  EXPECT_TRUE(c->complete);
  ASSERT_FALSE(c->panels.empty());
  for (const panel& p : c->panels)
    for (const series& s : p.lines) {
      ASSERT_THAT(s.points, SizeIs(p.xs.size())) << p.name << ", " << s.name;
      for (const auto& point : s.points) ASSERT_TRUE(point) << p.name << ", " << s.name;
    }
  for (const claim& k : c->claims) EXPECT_FALSE(k.measured.empty()) << k.what;
}

INSTANTIATE_TEST_SUITE_P(all, every_figure, testing::ValuesIn(blurred_figures()),
                         [](const auto& which) { return which.param; });

TEST(blurred, keeps_what_was_measured_when_interrupted) {
  sweep_options o = tiny();
  o.cancelled = [asked = 0]() mutable { return ++asked > 4; };  // asked before each place and each run
  const auto c = measure_blurred("16", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
  const series* base = c->panels.front().find("base");
  ASSERT_NE(base, nullptr);
  EXPECT_TRUE(base->points.front());
  EXPECT_FALSE(base->points.back());
}

TEST(blurred, refuses_a_figure_that_it_does_not_know) {
  const auto c = measure_blurred("8", tiny());
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::invalid_argument);
  EXPECT_THAT(c.error().message, HasSubstr("'8'"));
}

}  // namespace
}  // namespace stele::bench
