// A thread gets a log that no running transaction uses, and loses it to others only in between.
#include <gtest/gtest.h>
#include <tx/session/thread_registry.h>

#include <thread>

namespace stele::detail {
namespace {

constexpr auto nothing_in_use = [] { return false; };

struct registered_threads : testing::Test {
  // On return v is in a transaction, like a thread that has entered the pool.
  log_slot* acquire(thread_context& v, log_slot* last = nullptr) {
    const auto got = threads.acquire(v, last, true, [&](log_slot& p) {
      p.owner.set(&v);
      v.in_transaction.announce(true);
    });
    return got ? *got : nullptr;
  }
  static bool owns(const log_slot* p, const thread_context& v) { return p->owner.peek() == &v; }

  thread_registry threads{2};
  thread_context& a = threads.add();
  thread_context& b = threads.add();
  thread_context& c = threads.add();
};

TEST_F(registered_threads, a_free_log_comes_before_one_of_an_idle_thread) {
  log_slot* const first = acquire(a);
  a.in_transaction.withdraw();
  log_slot* const second = acquire(b);
  EXPECT_NE(first, second);
  EXPECT_TRUE(owns(first, a) && owns(second, b));
  EXPECT_EQ(acquire(a, first), first) << "its own still";
}

TEST_F(registered_threads, a_third_thread_takes_the_log_of_the_one_that_is_between_transactions) {
  log_slot* const of_a = acquire(a);
  log_slot* const of_b = acquire(b);
  b.in_transaction.withdraw();
  EXPECT_EQ(acquire(c), of_b);
  EXPECT_TRUE(owns(of_a, a) && owns(of_b, c));
}

TEST_F(registered_threads, a_third_thread_waits_while_both_run) {
  acquire(a);
  log_slot* const of_b = acquire(b);
  log_slot* got = nullptr;
  std::jthread third([&] { got = acquire(c); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(c.in_transaction.seen());
  b.in_transaction.withdraw();
  third.join();
  EXPECT_EQ(got, of_b);
}

TEST_F(registered_threads, an_ended_thread_leaves_its_log) {
  EXPECT_FALSE(threads.has_one_thread());
  log_slot* const of_a = acquire(a);
  acquire(b);
  a.in_transaction.withdraw();
  {
    const std::lock_guard hold(threads.mutex());
    threads.remove(a);
    EXPECT_EQ(threads.user_of(*of_a), nullptr);
  }
  EXPECT_EQ(acquire(c), of_a);
}

TEST_F(registered_threads, knows_whether_others_run) {
  EXPECT_FALSE(threads.others_run(a));
  acquire(a);
  EXPECT_FALSE(threads.others_run(a));
  EXPECT_TRUE(threads.others_run(b));
}

TEST_F(registered_threads, a_stop_takes_all_logs_but_one_and_waits_for_what_runs) {
  log_slot* const of_a = acquire(a);
  log_slot* const of_b = acquire(b);
  threads.stop(&a);
  EXPECT_TRUE(threads.is_paused());
  EXPECT_TRUE(owns(of_a, a));
  EXPECT_EQ(of_b->owner.peek(), nullptr);
  {
    const std::lock_guard hold(threads.mutex());
    EXPECT_EQ(threads.user_of(*of_b), &b) << "it runs";
  }
  std::atomic<bool> stopped{false};
  std::jthread pausing([&] {
    threads.await_stopped();
    stopped = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(stopped);
  b.in_transaction.withdraw();
  pausing.join();
  const auto refused = threads.acquire(b, of_b, false, [](log_slot&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), thread_registry::refusal::paused);
  std::jthread beginning([&] { acquire(b, of_b); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(b.in_transaction.seen());
  threads.resume();
  beginning.join();
  EXPECT_TRUE(owns(of_b, b));
}

TEST_F(registered_threads, closes_only_while_nothing_runs_and_nothing_is_in_use) {
  log_slot* const of_a = acquire(a);
  EXPECT_EQ(threads.close(nothing_in_use), thread_registry::closing::refused);
  a.in_transaction.withdraw();
  EXPECT_EQ(threads.close([] { return true; }), thread_registry::closing::refused);
  EXPECT_TRUE(owns(of_a, a)) << "all is as it was";
  EXPECT_EQ(threads.close(nothing_in_use), thread_registry::closing::closed);
  EXPECT_EQ(threads.close(nothing_in_use), thread_registry::closing::was_closed);
  const auto refused = threads.acquire(a, of_a, true, [](log_slot&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), thread_registry::refusal::closed);
  threads.reopen();
  EXPECT_NE(acquire(a, of_a), nullptr);
}

TEST_F(registered_threads, a_writer_waits_for_readers) {
  a.reading = true;
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    threads.await_readers();
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(done);
  a.reading = false;
  writer.join();
}

TEST_F(registered_threads, sums_what_logs_and_ended_reads_count) {
  log_slot* const of_a = acquire(a);
  of_a->counts.count_commit(7);
  statistics read;
  read.count_read();
  threads.count_ended_read(read);
  pool_counters sum;
  threads.add_counts(sum);
  EXPECT_EQ(sum.commits, 1u);
  EXPECT_EQ(sum.reads, 1u);
  EXPECT_EQ(threads.newest_commit(), 7u);
}

}  // namespace
}  // namespace stele::detail
