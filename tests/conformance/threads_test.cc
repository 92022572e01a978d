// Threads that start, work and end, under every policy; and processes that did not open the pool
// themselves.
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace stele::testing {
namespace {

struct shared_state {
  field<std::uint64_t> count;
  field<std::uint64_t> filler[16];
  field<std::uint64_t> twin;  // equals `count` after every commit
  field<std::uint64_t> own[64][8];
};

pool_options few_logs(const setting& s) {
  auto o = s.options();
  o.engine.log_count = 3, o.engine.log_size = 8192;
  return o;
}

class threads : public on_every_setting {
 protected:
  // Runs `body` in `count` threads at once. Under `external` they take turns.
  static void in_threads(const setting& s, unsigned count,
                         const std::function<void(unsigned)>& body) {
    std::mutex turn;
    std::vector<std::thread> all;
    for (unsigned i = 0; i < count; ++i)
      all.emplace_back([&, i] {
        if (s.policy == concurrency::external) {
          const std::lock_guard mine(turn);
          body(i);
        } else {
          body(i);
        }
      });
    for (auto& t : all) t.join();
  }
};

TEST_P(threads, increments_of_four_threads_add_up) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shared_state>(dir.file("pool"), s.options());
    const unsigned each = s.media == "file" ? 100 : 500;
    in_threads(s, 4, [&](unsigned) {
      for (unsigned i = 0; i < each; ++i)
        EXPECT_TRUE(succeeds(p.update([](shared_state& x) { x.count += 1, x.twin += 1; })));
    });
    EXPECT_EQ(p.read([](const shared_state& x) { return x.count.load(); }).value_or(0), 4u * each);
  });
}

TEST_P(threads, there_may_be_more_of_them_than_logs_and_they_may_end) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shared_state>(dir.file("pool"), few_logs(s));
    for (int wave = 0; wave < 3; ++wave)
      in_threads(s, 12, [&](unsigned me) {
        for (int i = 0; i < 10; ++i)
          EXPECT_TRUE(succeeds(
              p.update([&](shared_state& x) { x.own[me][0] += 1, x.count += 1, x.twin += 1; })));
      });
    auto right = p.read([](const shared_state& x) {
      for (unsigned me = 0; me < 12; ++me)
        if (x.own[me][0] != 30) return false;
      return x.count == 360 && x.twin == 360;
    });
    EXPECT_TRUE(right.value_or(false));
  });
}

TEST_P(threads, readers_see_whole_states_while_a_writer_runs) {
  under_each_policy([](const setting& s) {
    if (s.policy == concurrency::external) return;  // its caller separates them
    scratch_directory dir;
    auto p = open_pool<shared_state>(dir.file("pool"), s.options());
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        std::uint64_t last = 0;
        while (!done) {
          auto seen = p.read(
              [&](const shared_state& x) { return std::pair(x.count.load(), x.twin.load()); });
          ASSERT_TRUE(succeeds(seen));
          ASSERT_EQ(seen->first, seen->second);
          ASSERT_GE(seen->first, last) << "a later read saw an earlier state";
          last = seen->first;
        }
      });
    const int commits = s.media == "file" ? 200 : 2000;
    for (int i = 0; i < commits; ++i)
      EXPECT_TRUE(succeeds(p.update([](shared_state& x) { x.count += 1, x.twin += 1; })));
    done = true;
    for (auto& r : readers) r.join();
  });
}

// Under stm and single_writer a thread that has been alone for long takes no locks.
TEST_P(threads, others_come_to_a_thread_that_was_alone_for_long) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shared_state>(dir.file("pool"), s.options());
    const auto increment = [&] {
      EXPECT_TRUE(succeeds(p.update([](shared_state& x) { x.count += 1, x.twin += 1; })));
    };
    const unsigned alone = s.media == "file" ? 520 : 1100, together = s.media == "file" ? 50 : 500;
    for (unsigned round = 0; round < 2; ++round) {
      for (unsigned i = 0; i < alone; ++i) increment();
      in_threads(s, 3, [&](unsigned) {
        for (unsigned i = 0; i < together; ++i) increment();
      });
    }
    auto right = p.read([&](const shared_state& x) {
      return x.count == 2 * (alone + 3 * together) && x.twin == x.count;
    });
    EXPECT_TRUE(right.value_or(false));
  });
}

TEST_P(threads, a_pool_closed_by_another_thread_than_opened_it_is_clean) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    std::thread([&] {
      auto p = open_pool<shared_state>(dir.file("pool"), s.options());
      EXPECT_TRUE(succeeds(p.update([](shared_state& x) { x.count = 5; })));
      std::thread([moved = std::move(p)]() mutable {
        EXPECT_TRUE(succeeds(moved.close()));
      }).join();
    }).join();
    auto p = open_pool<shared_state>(dir.file("pool"), s.options());
    EXPECT_EQ(p.read([](const shared_state& x) { return x.count.load(); }).value_or(0), 5u);
  });
}

TEST_P(threads, a_forked_child_is_refused_and_harms_nothing) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shared_state>(dir.file("pool"), s.options());
    ASSERT_TRUE(succeeds(p.update([](shared_state& x) { x.count = 1; })));
    child copy([&](const word_sender& send) {
      ::alarm(10);
      send(fails_with(p.update([](shared_state& x) { x.count = 9; }), errc::poisoned) ? 1 : 0);
      send(fails_with(p.read([](const shared_state& x) { return x.count.load(); }), errc::poisoned)
               ? 1
               : 0);
      {
        auto gone = std::move(p);
      }  // its destructor neither hangs nor touches the file
      send(2);
    });
    std::uint64_t word = 0;
    for (const std::uint64_t expected : {1u, 1u, 2u}) {
      ASSERT_TRUE(copy.receive(word));
      EXPECT_EQ(word, expected);
    }
    EXPECT_EQ(copy.wait(), 0);
    EXPECT_TRUE(fails_with(pool<shared_state>::open(dir.file("pool")), errc::in_use))
        << "the child gave up its parent's lock";
    ASSERT_TRUE(succeeds(p.update([](shared_state& x) { x.count += 1; })));
    EXPECT_EQ(p.read([](const shared_state& x) { return x.count.load(); }).value_or(0), 2u);
  });
}

INSTANTIATE_TEST_SUITE_P(all, threads,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::ValuesIn(all_media())),
                         setting_name);

// A transaction that waits for another thread's first transaction must not block that one.
TEST(stm, a_thread_may_come_while_another_is_in_the_middle_of_a_transaction) {
  scratch_directory dir;
  const std::string mechanism = known_of({"default", "redo-async"}).back();
  auto p = open_pool<shared_state>(dir.file("pool"), setting{mechanism, "process"}.options());
  std::future<bool> other;
  auto outer = p.update([&](shared_state& x) {
    x.count = 1;
    if (!other.valid())
      other = std::async(std::launch::async, [&] {
        return p.read([](const shared_state& y) { return y.own[3][0].load(); }).has_value();
      });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(10)), std::future_status::ready)
        << "it waits for this transaction's end";
  });
  EXPECT_TRUE(succeeds(outer));
  EXPECT_TRUE(other.get());
}

}  // namespace
}  // namespace stele::testing
