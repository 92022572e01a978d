// Ordered commits of a pool without a background thread. Their overlay was flushed at 256 commits
// alone, however long it had become.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

constexpr std::size_t lines = 100 * 128;
struct root {
  using pool_resident = void;
  field<std::uint64_t> words[lines * 8];
};

TEST(long_overlay, is_flushed_without_a_background_thread) {
  scratch_directory dir;
  auto p = open_pool<root>(dir.file("pool"), {.create_size = 32 << 20,
                                              .engine = {.mechanism = "default",
                                                         .media = "process",
                                                         .log_size = 8 << 20,
                                                         .log_count = 1,
                                                         .defer_ordered = deferral::always,
                                                         .background = false}});
  const auto commit = [&](std::size_t n) {
    return p.update(
        [n](root& r) {
          for (std::size_t i = 0; i < 128; ++i) r.words[(n * 128 + i) * 8] = n + 1;
        },
        durability::ordered);
  };
  const auto waiting = [&] { return p.core().state().deferred_logs.load(); };
  std::size_t commits = 0;
  do {
    ASSERT_TRUE(succeeds(commit(commits++)));
  } while (waiting() != 0 && commits < 100);
  EXPECT_EQ(waiting(), 0u) << "after " << commits << " commits of 128 lines";
  EXPECT_GT(commits, 50u);
}

}  // namespace
}  // namespace stele::testing
