// A thread that waits for the writer's mutex of single_writer had deferred commits, whose locks are
// held while other processes read. It counted as in a transaction, so nobody released them, and the
// thread with the mutex ran again for ever.
#include <tests/conformance/pools.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

struct one_word {
  field<std::uint64_t> value;
};

TEST(waiting_writer, releases_the_locks_of_its_deferred_commits) {
  scratch_directory dir;
  auto p = open_pool<one_word>(
      dir.file("pool"),
      {.create_size = 1 << 20,
       .policy = concurrency::single_writer,
       .engine = {.media = "adr", .defer_ordered = deferral::always, .background = false}});
  const auto reads = pool<one_word>::open_read_only(dir.file("pool"));
  ASSERT_TRUE(succeeds(reads));
  ASSERT_TRUE(succeeds(reads->read([](const one_word& r) { return r.value.load(); })));
  std::atomic<bool> holds{false}, comes{false};
  std::thread other([&] {
    EXPECT_TRUE(succeeds(p.update([](one_word& r) { r.value = 1; }, durability::ordered)));
    while (!holds) std::this_thread::yield();
    comes = true;
    EXPECT_TRUE(succeeds(p.update([](one_word& r) { r.value += 1; }, durability::ordered)));
  });
  while (p.read([](const one_word& r) { return r.value.load(); }).value_or(0) != 1)
    std::this_thread::yield();
  unsigned attempts = 0;
  const auto done = p.update([&](one_word& r) {
    holds = true;
    while (!comes) std::this_thread::yield();
    if (++attempts == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits
    if (attempts > 300) cancel("it would run again for ever");
    r.value += 1;
  });
  EXPECT_TRUE(succeeds(done));
  other.join();
  EXPECT_EQ(reads->read([](const one_word& r) { return r.value.load(); }).value_or(0), 3u);
}

}  // namespace
}  // namespace stele::testing
