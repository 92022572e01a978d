// An object of a thread that was made before the thread's first transaction is destroyed after what
// the library keeps of the thread. A transaction in its destructor used freed memory.
#include <tests/conformance/pools.h>

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
  auto p = open_pool<counter>(dir.file("pool"), {.create_size = 1 << 20, .media = "process"});
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
  auto again = open_pool<counter>(dir.file("pool"), {.media = "process"});
  EXPECT_EQ(again.read([](const counter& c) { return c.n.load(); }).value_or(9), 3u);
}

}  // namespace
}  // namespace stele::testing
