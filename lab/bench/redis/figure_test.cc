// The architecture-aware evaluation with Redis as its host: its figures are whole, and the pool of
// the counted ones has what Redis has.
#include <bench/figures/archapt.h>
#include <bench/figures/figure_test.h>
#include <bench/host.h>

namespace stele::bench {
namespace {

// Each system of each mix is a server.
sweep_options tiny() {
  sweep_options o = tiny_hosted_sweep("redis");
  o.archapt_keys = o.traced_keys = 64;
  o.archapt_threads = 1;
  o.traced_operations = 100;
  return o;
}

class every_figure_on_redis : public testing::TestWithParam<const char*> {};

// A12
TEST_P(every_figure_on_redis, yields_all_points) {
  const std::string figure = GetParam();
  const auto c = measure_archapt(figure, tiny());
  ASSERT_NO_FATAL_FAILURE(expect_whole(c, "archapt-" + figure + "-redis"));
  EXPECT_THAT(c->notes, testing::Contains(testing::HasSubstr("of Redis")));
  if (figure == "3" || figure == "10") expect_every_point(*c);
}

// Figure 8 is 7 with latencies.
INSTANTIATE_TEST_SUITE_P(all, every_figure_on_redis,
                         testing::Values("2", "3", "7", "9", "10", "IV"));

TEST(archapt_on_redis, has_all_figures_of_mixes_but_the_ones_without_a_host) {
  EXPECT_THAT(archapt_hosted_figures("redis"),
              testing::ElementsAre("2", "3", "7", "8", "9", "10", "IV"));
  EXPECT_THAT(measure_archapt("6", tiny()).error().message,
              testing::HasSubstr("choose one of 2, 3, 7"));
}

TEST(archapt_on_redis, uses_of_keys_are_those_of_the_operations) {
  const auto c = measure_archapt("3", tiny_hosted_sweep("redis"));
  ASSERT_TRUE(c) << c.error().message;
  const panel& sums = *std::ranges::find(c->panels, "in sum", &panel::name);
  const auto at = [&](const char* line, std::size_t place) {
    return sums.find(line)->points[place]->median;
  };
  EXPECT_EQ(sums.xs[6], "tpcc");
  EXPECT_GT(at("at most twice", 0), 50);  // ycsb-a
  EXPECT_GT(at("twice or more", 4), 80);  // ycsb-e, which scans
}

class every_mirrored_workload : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(all, every_mirrored_workload,
                         testing::Values("ycsb-e", "ycsb-f", "tpcc", "linkbench"));

TEST_P(every_mirrored_workload, leaves_in_the_pool_what_redis_has) {
  task t;
  t.host = "redis";
  t.workload = GetParam();
  t.dir = tiny_sweep().dir;
  t.parameters = {.value_size = 64, .keys = 300};
  t.pool_size_bytes = std::size_t{64} << 20;
  const auto w = make_hosted_workload(t);
  ASSERT_TRUE(w) << w.error().message;
  const std::string path = pool_path(t, "mirrored");
  auto pool = detail::pool_handle::open(path, stele_options(t, "default"), (*w)->root_size());
  std::filesystem::remove(path);
  ASSERT_TRUE(pool) << pool.error().message;
  (*w)->attach(std::move(*pool));
  const auto filled = (*w)->set_up();
  ASSERT_TRUE(filled) << filled.error().message;
  base::rng random(1);
  for (int i = 0; i < 300; ++i) {
    const workloads::operation some[] = {(*w)->draw(random), (*w)->draw(random)};
    const auto done = (*w)->apply(std::span(some).first(1 + i % 2));
    ASSERT_TRUE(done) << done.error().message;
  }
  const auto same = (*w)->digest();
  EXPECT_TRUE(same) << same.error().message;
  (*w)->detach();
}

}  // namespace
}  // namespace stele::bench
