// One pause at a time; a transaction that runs alone has one that spares it.
#include <gtest/gtest.h>
#include <tx/session/pauses.h>

#include <thread>

namespace stele::detail {
namespace {

struct paused_threads : testing::Test {
  pool_pause pause(const thread_context* except = nullptr) {
    return all.begin(threads, all.one(), except);
  }
  void run_alone(thread_context& v) {
    all.run_alone(v, [&](std::unique_lock<std::mutex> one) {
      return all.begin(threads, std::move(one), &v);
    });
  }
  bool is_paused() {
    const std::lock_guard hold(threads.mutex());
    return threads.is_paused();
  }
  thread_registry threads{2};
  pauses all;
  thread_context& a = threads.add();
  thread_context& b = threads.add();
};

TEST_F(paused_threads, pool_resumes_when_the_last_holder_of_the_pause_is_gone) {
  {
    std::optional<pool_pause> first(pause());
    EXPECT_TRUE(is_paused());
    const pool_pause moved = std::move(*first);
    first.reset();
    EXPECT_TRUE(is_paused());
  }
  EXPECT_FALSE(is_paused());
}

TEST_F(paused_threads, pool_is_not_paused_again_before_it_resumes) {
  std::optional<pool_pause> first(pause());
  std::atomic<bool> second{false};
  std::jthread other([&] {
    const pool_pause waits = pause();
    second = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(second);
  first.reset();
  other.join();
  EXPECT_TRUE(second);
}

TEST_F(paused_threads, pool_runs_one_thread_alone_and_keeps_its_log) {
  log_slot& log = threads.logs()[0];
  log.owner.set(&a);
  threads.logs()[1].owner.set(&b);
  a.in_transaction.announce(true);
  run_alone(a);
  EXPECT_TRUE(a.runs_alone && is_paused());
  EXPECT_EQ(log.owner.peek(), &a);
  EXPECT_EQ(threads.logs()[1].owner.peek(), nullptr);
  std::jthread([&] { run_alone(b); }).join();
  EXPECT_FALSE(b.runs_alone) << "another does";
  all.end_running_alone(a);
  EXPECT_FALSE(a.runs_alone || is_paused());
  a.in_transaction.withdraw();  // or b would wait for its end
  run_alone(b);
  EXPECT_TRUE(b.runs_alone);
  all.end_running_alone(b);
}

TEST_F(paused_threads, pool_lets_no_thread_run_alone) {
  const pool_pause held = pause();
  std::jthread([&] { run_alone(a); }).join();
  EXPECT_FALSE(a.runs_alone);
}

}  // namespace
}  // namespace stele::detail
