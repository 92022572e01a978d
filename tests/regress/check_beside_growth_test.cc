// Long work on a pool compares the file's length with the pool's size. It took a file that another
// thread was lengthening for a truncated one, and poisoned the pool.
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

TEST(check_beside_growth, finds_nothing) {
  scratch_directory dir;
  auto p = open_pool<field<std::uint64_t>>(dir.file("pool"), {.create_size = 512 << 10});
  std::atomic<bool> stop{false};
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!stop.load()) EXPECT_TRUE(succeeds(p.grow(1)));  // only looks at the length
    });
  for (std::size_t size = 1 << 20; size <= 24 << 20; size += 32 << 10)
    EXPECT_TRUE(succeeds(p.grow(size)));
  stop = true;
}

}  // namespace
}  // namespace stele::testing
