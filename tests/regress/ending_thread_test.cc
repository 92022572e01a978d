// An object of a thread that was made before the thread's first transaction is destroyed after what
// the library keeps of the thread. A transaction in its destructor used freed memory.
#include <tests/conformance/pools.h>

#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

namespace stele::testing {
namespace {

struct counter {
  field<std::uint64_t> n;
};
pool<counter>* used_pool = nullptr;
result<> answer;

struct changes_when_destroyed {
  ~changes_when_destroyed() {
    answer = used_pool->update([](counter& c) { c.n += 1; });
  }
  int touched = 0;
};

TEST(ending_thread, may_use_a_pool_in_its_last_destructors) {
  scratch_directory dir;
  auto p = open_pool<counter>(dir.file("pool"),
                              {.create_size = 1 << 20, .engine = {.media = "process"}});
  used_pool = &p;
  std::thread([&] {
    thread_local changes_when_destroyed late;
    late.touched = 1;
    EXPECT_TRUE(succeeds(p.update([](counter& c) { c.n += 1; })));
  }).join();
  EXPECT_TRUE(succeeds(answer));
  EXPECT_EQ(p.read([](const counter& c) { return c.n.load(); }).value_or(9), 2u);
  std::thread([&] { EXPECT_TRUE(succeeds(p.update([](counter& c) { c.n += 1; }))); }).join();
  EXPECT_TRUE(succeeds(p.close()));
  auto again = open_pool<counter>(dir.file("pool"), {.engine = {.media = "process"}});
  EXPECT_EQ(again.read([](const counter& c) { return c.n.load(); }).value_or(9), 3u);
}

// A thread that ends held the list of open pools while it waited for the lock of a thread that took
// the bias away, and that one waited for a body that needs the list to store to volatile memory.
TEST(ending_thread, does_not_wait_for_a_body_that_another_thread_waits_for) {
  using namespace std::chrono_literals;
  scratch_directory dir;
  auto p = open_pool<counter>(dir.file("pool"),
                              {.create_size = 1 << 20, .engine = {.media = "process"}});
  const auto add = [&] { return p.update([](counter& c) { c.n += 1; }); };
  ::alarm(60);
  std::promise<void> ends;
  std::thread ending([&] {
    EXPECT_TRUE(succeeds(add()));
    ends.get_future().wait();
  });
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(succeeds(add()));  // this thread has the bias
  std::thread revoking;
  counter in_memory;
  EXPECT_TRUE(succeeds(p.update([&](counter& c) {
    revoking = std::thread([&] { EXPECT_TRUE(succeeds(add())); });
    std::this_thread::sleep_for(100ms);  // it waits for this body
    ends.set_value();
    std::this_thread::sleep_for(100ms);  // the other thread waits for that one
    in_memory.n = 1;
    c.n += 1;
  })));
  revoking.join();
  ending.join();
  ::alarm(0);
  EXPECT_EQ(p.read([](const counter& c) { return c.n.load(); }).value_or(0), 2003u);
}

}  // namespace
}  // namespace stele::testing
