// Kiln's evaluation: every figure has its series and points and answers its statements; a run is
// made once; interruptions and unknown names are reported.
#include <bench/figures/figure_test.h>
#include <bench/figures/kiln.h>
#include <bench/figures/kiln_parts.h>

#include <algorithm>

namespace stele::bench {
namespace {

sweep_options tiny() {
  sweep_options o = tiny_sweep();
  o.kiln_keys = 256;
  o.kiln_transactions = 60;
  o.kiln_large_keys = 8;
  o.kiln_large_transactions = 24;
  o.kiln_large_bytes = 4096;
  o.kiln_workloads = 2;
  o.kiln_written_before = 65536;
  return o;
}

class every_kiln_figure : public testing::TestWithParam<std::string> {};

// The structures fit into the caches, so the native system writes nothing to memory, and ratios to
// that are left out; all other points are there.
// K12
TEST_P(every_kiln_figure, yields_all_series_and_answers_what_it_can) {
  const auto c = measure_kiln(GetParam(), tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "kiln-" + GetParam()));
  EXPECT_EQ(c->claims.empty(), GetParam() == "sensitivity");  // not a figure of the text
  for (const panel& p : c->panels) {
    if (p.y.find("throughput") == p.y.npos) continue;
    for (const series& s : p.lines)
      for (std::size_t i = 0; i < p.xs.size(); ++i)
        EXPECT_TRUE(s.points[i] || (p.x == "quantity" && p.xs[i] != "throughput"))
            << p.name << ", " << s.name << ", " << p.xs[i];
  }
}

// Each statement names a panel, series and place that the figure has.
TEST_P(every_kiln_figure, has_a_place_for_each_statement) {
  const auto c = measure_kiln(GetParam(), tiny());
  ASSERT_TRUE(c);
  for (const claim& k : c->claims) {
    if (k.what.find("memory") != k.what.npos || k.what.find("traffic") != k.what.npos ||
        GetParam() == "overflow")
      continue;
    EXPECT_FALSE(k.measured.empty()) << k.what;
  }
}

INSTANTIATE_TEST_SUITE_P(all, every_kiln_figure, testing::ValuesIn(kiln_figures()),
                         [](const auto& which) { return which.param; });

TEST(kiln_figures, are_incomplete_when_interrupted) {
  sweep_options o = tiny();
  o.seed = 77;  // not yet run in this process
  o.cancelled = [asked = 0]() mutable { return ++asked > 8; };
  const auto c = measure_kiln("9", o);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_FALSE(c->complete);
}

TEST(kiln_figures, refuse_a_figure_that_they_do_not_know) {
  expect_unknown(measure_kiln("2", tiny()), "2");
}

TEST(kiln_figures, make_a_run_once) {
  sweep_options o = tiny();
  unsigned made = 0;
  o.seed = 78;
  o.progress = [&made](const std::string&) { ++made; };
  ASSERT_TRUE(measure_kiln("6", o));
  EXPECT_EQ(made, 2u * 2 * 2);  // machines, workloads, sizes
  ASSERT_TRUE(measure_kiln("6", o));
  EXPECT_EQ(made, 2u * 2 * 2);
}

// Another seed gives another value for the same run.
TEST(kiln_figures, are_functions_of_their_seed) {
  sweep_options o = tiny();
  const auto base = kiln::base_machine();
  ASSERT_TRUE(base) << base.error().message;
  const auto native = kiln::system_of(*base, "native", "native", 2);
  const kiln::run_spec first = kiln::run_spec_of(native, "hash", kiln::element::small, o);
  o.seed = 79;
  ASSERT_TRUE(kiln::run_all(std::span(&first, 1), o));
  const double alone = kiln::throughput(*kiln::result_of(first, o));
  o.seed = 80;
  ASSERT_TRUE(kiln::run_all(std::span(&first, 1), o));
  EXPECT_NE(kiln::throughput(*kiln::result_of(first, o)), alone);
}

}  // namespace
}  // namespace stele::bench
