// The peers of the fragmentation figure: their numbers are plausible, and peers that cannot be
// measured are reported.
#include <bench/figures/fragmentation.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stele::bench {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t phase_bytes = std::uint64_t{8} << 20, slack_bytes = std::uint64_t{1} << 20;

class heap_peer : public testing::TestWithParam<std::string> {
 protected:
  static result<heap_space> measure(std::string_view workload) {
    fragmentation_options o;
    o.phase_bytes = phase_bytes;
    o.dir = testing::TempDir();
    return measure_peer(GetParam(), *find_heap_workload(workload), o);
  }
};

TEST_P(heap_peer, holds_what_is_live_and_not_much_beside_it) {
  const auto grown = measure("W1");
  if (!grown && grown.error().code == errc::unsupported) GTEST_SKIP() << grown.error().message;
  ASSERT_TRUE(grown.has_value()) << grown.error().message;
  EXPECT_GE(grown->live_bytes, 2 * phase_bytes);
  EXPECT_GT(grown->fragmentation(), 0.0);
  EXPECT_LT(grown->fragmentation(), 0.4);
}

TEST_P(heap_peer, keeps_what_it_held_before_objects_were_freed) {
  const auto grown = measure("W1"), freed = measure("W2");
  if (!grown && grown.error().code == errc::unsupported) GTEST_SKIP() << grown.error().message;
  ASSERT_TRUE(freed.has_value()) << freed.error().message;
  EXPECT_LE(freed->held_bytes, grown->held_bytes + slack_bytes);
  EXPECT_GT(freed->fragmentation(), grown->fragmentation());
}

INSTANTIATE_TEST_SUITE_P(peers, heap_peer, testing::ValuesIn(heap_peers()),
                         [](const auto& i) { return i.param; });

TEST(heap_peers, refuses_what_it_does_not_know) {
  const auto unknown = measure_peer("nonesuch", heap_workloads[0], {});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, errc::not_found);
  EXPECT_THAT(unknown.error().message, HasSubstr("glibc, jemalloc, mimalloc, libpmemobj"));
}

TEST(heap_peers, says_where_no_pool_can_be) {
  fragmentation_options o;
  o.dir = testing::TempDir() + "nonesuch";
  const auto refused = measure_peer("libpmemobj", heap_workloads[0], o);
  ASSERT_FALSE(refused.has_value());
  if (refused.error().code == errc::unsupported) GTEST_SKIP() << refused.error().message;
  EXPECT_THAT(refused.error().message, HasSubstr(o.dir));
}

TEST(heap_peers, says_the_scale) {
  EXPECT_EQ(scale_of({}), "256 MiB requested in each phase (the paper: 1 GB)");
}

}  // namespace
}  // namespace stele::bench
