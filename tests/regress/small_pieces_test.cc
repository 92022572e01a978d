// A log-structured pool whose live data is in pieces of a word or two, each with a head of its own: cleaning takes no more
// chunks than it has room for with their heads, and the pool is not called full with half of its words stale.
#include <gtest/gtest.h>
#include <unistd.h>
#include <workloads/workload.h>

#include <filesystem>

namespace stele::testing {
namespace {

TEST(small_pieces, a_pool_two_fifths_full_takes_updates) {
  const std::string path = ::testing::TempDir() + "/small-pieces-" + std::to_string(::getpid()) + ".stele";
  auto w = workloads::make_workload("bptree", {.value_size = 128, .keys = 16384});
  ASSERT_TRUE(w);
  pool_options o;
  o.create_size = 3'061'104;
  o.mechanism = "log_structured";
  o.media = "process";
  o.log_size = 32768;
  o.background = false;
  auto handle = detail::pool_handle::open(path, o, (*w)->root_size());
  std::filesystem::remove(path);
  ASSERT_TRUE(handle) << handle.error().message;
  (*w)->attach(std::move(*handle));
  ASSERT_TRUE((*w)->set_up());
  base::rng random(1);
  for (unsigned i = 0; i < 30'000; ++i) {
    const auto op = (*w)->draw(random);
    const auto done = (*w)->apply({&op, 1});
    ASSERT_TRUE(done) << "operation " << i << ": " << done.error().message;
  }
  EXPECT_TRUE((*w)->digest());
  (*w)->detach();
}

}  // namespace
}  // namespace stele::testing
