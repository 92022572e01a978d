// A close beside threads that begin transactions: it is refused, and they go on, or it succeeds,
// and what it has closed has all that was acknowledged. A thread that had just begun was not seen,
// because the logs were taken from their owners after the look at them.
#include <tests/conformance/pools.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

struct counts {
  field<std::uint64_t> of_thread[2];
};

class close_beside_updates : public ::testing::TestWithParam<concurrency> {};

TEST_P(close_beside_updates, loses_none_that_was_acknowledged) {
  scratch_directory dir;
  const pool_options options{
      .create_size = 1 << 20, .policy = GetParam(), .engine = {.media = "process", .log_count = 2}};
  std::uint64_t acknowledged[2] = {};
  unsigned refused = 0;
  for (unsigned round = 0; round < 20; ++round) {
    auto p = open_pool<counts>(dir.file("pool"), options);
    EXPECT_TRUE(succeeds(p.read([&](const counts& c) {
      for (unsigned t = 0; t < 2; ++t) EXPECT_EQ(c.of_thread[t], acknowledged[t]);
    })));
    std::atomic<unsigned> begun = 0;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        while (p.update([t](counts& c) { c.of_thread[t] += 1; })) {
          if (acknowledged[t]++ % 64 == 0) ++begun;
          std::this_thread::sleep_for(std::chrono::microseconds(5));  // else every close is refused
        }
      });
    while (begun.load() < 2) std::this_thread::yield();
    result<> closed = p.close();
    for (; !closed; closed = p.close()) {
      ASSERT_TRUE(fails_with(closed, errc::in_use));
      ++refused;
    }
  }
  RecordProperty("refused", std::to_string(refused));
}

INSTANTIATE_TEST_SUITE_P(of, close_beside_updates,
                         ::testing::Values(concurrency::stm, concurrency::single_writer),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace stele::testing
