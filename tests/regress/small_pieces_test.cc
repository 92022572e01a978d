// A log-structured pool with its live data in entries of a word or two, each with its own header.
// Cleaning must count those headers when it chooses chunks, and the pool must not report full while
// half of its words are stale.
#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <workloads/workload.h>

namespace stele::testing {
namespace {

void update(std::size_t value_size, std::size_t keys, std::size_t pool_size, unsigned updates) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  auto w = workloads::make_workload("bptree", {.value_size = value_size, .keys = keys});
  ASSERT_TRUE(w);
  pool_options o;
  o.create_size = pool_size;
  o.engine.mechanism = "log_structured";
  o.engine.media = "process";
  o.engine.log_size = 32768;
  o.engine.background = false;
  auto handle = detail::pool_handle::open(path, o, (*w)->root_size());
  ASSERT_TRUE(handle) << handle.error().message;
  (*w)->attach(std::move(*handle));
  ASSERT_TRUE((*w)->set_up());
  base::rng random(1);
  for (unsigned i = 0; i < updates; ++i) {
    const auto op = (*w)->draw(random);
    const auto done = (*w)->apply({&op, 1});
    ASSERT_TRUE(done) << "operation " << i << ": " << done.error().message;
  }
  EXPECT_TRUE((*w)->digest());
  (*w)->detach();
}

TEST(small_pieces, a_pool_two_fifths_full_takes_updates) {
  update(128, 16384, 3'061'104, 30'000);
}

// Chunks were ranked without the headers of their entries: the sparsest were really full, and
// cleaning copied them again and again.
TEST(small_pieces, a_pool_four_fifths_full_takes_updates) {
  update(1024, 32768, 22'256'430, 30'000);
}

}  // namespace
}  // namespace stele::testing
