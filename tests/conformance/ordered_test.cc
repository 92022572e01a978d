// Ordered commits. Their thread and other threads see them at once; they need no fence; they are
// durable after a sync, wait, durable commit or close. After a kill at any moment, a prefix of them
// is recovered.
//
// The mechanism default defers them. With redo an ordered commit is a durable one, and the same
// tests must pass.
#include <base/rng.h>
#include <sys/mman.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

using std::chrono::steady_clock;

constexpr auto durable = durability::durable, ordered = durability::ordered;

// Kills a test that hangs.
class time_limit {
 public:
  explicit time_limit(unsigned seconds) { ::alarm(seconds); }
  ~time_limit() { ::alarm(0); }
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
};

struct triple {
  std::uint64_t a, b, c;
  friend bool operator==(const triple&, const triple&) = default;
};
struct node {
  field<node*> next;
  field<std::uint64_t> more[249];
};
struct alignas(64) cell {
  field<std::uint64_t> value;
};
struct content {
  cell count;
  field<std::uint8_t> bytes[16];
  cell twin;  // equals `count` after every commit
  field<triple> wide;
  cell cells[64];
  field<node*> top;
  field<std::uint64_t> nodes;
  field<std::uint64_t> big[4096];
};

class ordered_commits : public on_every_setting {
 protected:
  static pool_options options(const setting& s, std::size_t log_size = 64 << 10) {
    auto o = s.options(2u << 20);
    o.engine.log_size = log_size, o.engine.log_count = 4;
    return o;
  }
};

void set(content& c, std::uint64_t n) {
  c.count.value = n;
  c.twin.value = n;
  c.bytes[n % 16] = static_cast<std::uint8_t>(n);
  if (n % 3 == 0) c.wide = triple{n, n + 1, n + 2};
}
bool is(const content& c, std::uint64_t n) {
  bool right = c.count.value == n && c.twin.value == n;
  for (std::uint64_t i = n > 15 ? n - 15 : 1; i <= n; ++i)
    right = right && c.bytes[i % 16] == static_cast<std::uint8_t>(i);
  const std::uint64_t third = n - n % 3;
  return right && (third == 0 || c.wide == triple{third, third + 1, third + 2});
}

// A callback is called once, and not before its commit is durable: here by the sync, the durable
// commit or the close that follows.
TEST_P(ordered_commits, are_told_of_when_they_are_durable) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s));
    std::atomic<int> told = 0;
    auto count = [&](result<> r) {
      EXPECT_TRUE(succeeds(r));
      ++told;
    };
    for (std::uint64_t n = 1; n <= 6; ++n) {
      ASSERT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered)));
      p.when_durable(p.committed(), count);
      if (n != 2 && n != 4) continue;
      ASSERT_TRUE(
          succeeds(n == 2 ? p.sync() : p.update([&](content& c) { set(c, n + 100); }, durable)));
      EXPECT_EQ(told, static_cast<int>(n));
    }
    p.when_durable(ticket{}, count);
    EXPECT_GE(told, 5) << "nothing has to happen for what is durable already";
    ASSERT_TRUE(succeeds(p.close()));
    EXPECT_EQ(told, 7);
  });
}

TEST_P(ordered_commits, are_seen_at_once_by_their_thread) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s, 4096));  // many laps of the log
    const std::uint64_t all = s.media == "file" && s.mechanism != "default" ? 500 : 3000;
    for (std::uint64_t n = 1; n <= all; ++n) {
      ASSERT_TRUE(succeeds(p.update(
          [&](content& c) {
            EXPECT_TRUE(is(c, n - 1)) << "an update after " << n - 1;
            set(c, n);
            EXPECT_TRUE(is(c, n)) << "its own stores over ordered ones, " << n;
          },
          ordered)));
      if (n % 2 == 0) {
        EXPECT_TRUE(p.read([&](const content& c) { return is(c, n); }).value_or(false))
            << "a read after " << n;
      }
      if (HasFailure()) return;
    }
  });
}

// What is wrong with the content after n commits; empty: nothing.
std::string problem_of(const content& c, std::uint64_t n) {
  std::string wrong;
  if (c.count.value != n) wrong += "count " + std::to_string(c.count.value) + " ";
  if (c.twin.value != n) wrong += "twin " + std::to_string(c.twin.value) + " ";
  if (wrong.empty() && !is(c, n)) {
    wrong = "another field, bytes";
    for (const auto& b : c.bytes) wrong += " " + std::to_string(b);
    wrong += ", wide " + std::to_string(c.wide.load().a);
  }
  return wrong;
}

// The threads take turns, so this is a valid use of `external` too.
TEST_P(ordered_commits, are_seen_at_once_by_other_threads) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s));
    std::atomic<std::uint64_t> done{0};
    const std::uint64_t all = 600;
    std::vector<std::jthread> threads;
    for (unsigned me = 0; me < 3; ++me)
      threads.emplace_back([&, me] {
        for (;;) {
          const std::uint64_t before = done.load();
          if (before >= all) return;
          if (before % 3 != me) {
            std::this_thread::yield();
            continue;
          }
          if (before % 2 == 0) {
            const auto seen = p.read([&](const content& c) { return problem_of(c, before); });
            EXPECT_EQ(seen.value_or("an error"), "")
                << "a read after " << before << ", " << name_of(s.policy);
          }
          const auto found = p.update(
              [&](content& c) {
                const std::string wrong = problem_of(c, before);
                set(c, before + 1);
                return wrong;
              },
              before % 7 == 0 ? durable : ordered);
          EXPECT_EQ(found.value_or("an error"), "")
              << "an update after " << before << ", " << name_of(s.policy);
          done.store(HasFailure() ? all : before + 1);
        }
      });
    threads.clear();
    if (!HasFailure()) {
      EXPECT_TRUE(p.read([&](const content& c) { return is(c, all); }).value_or(false));
    }
  });
}

TEST_P(ordered_commits, stay_when_what_follows_is_rolled_back) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s));
    struct stray {};
    for (std::uint64_t n = 1; n <= 300; ++n) {
      ASSERT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered)));
      const auto spoil = [&](content& c) {
        set(c, n + 1000);
        for (auto& other : c.cells) other.value = n;
        (void)make<node>();
      };
      const auto d = n % 2 == 0 ? durable : ordered;
      if (n % 3 == 0) {
        EXPECT_THROW((void)p.update([&](content& c) { spoil(c), throw stray(); }, d), stray);
      } else {
        EXPECT_TRUE(fails_with(p.update([&](content& c) { spoil(c), cancel("not this one"); }, d),
                               errc::cancelled));
      }
      ASSERT_TRUE(p.read([&](const content& c) {
                     return is(c, n) && c.cells[5].value == 0;
                   }).value_or(false))
          << "after " << n;
    }
    ASSERT_TRUE(succeeds(p.sync()));
    EXPECT_EQ(audit(p).used_blocks, 1u);
  });
}

TEST_P(ordered_commits, give_back_what_they_destroyed) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s, 8192));
    const auto push = [&](durability d) {
      return p.update(
          [](content& c) {
            auto* n = make<node>();
            n->next = c.top;
            c.top = n;
            c.nodes += 1;
          },
          d);
    };
    const auto fill = [&](durability d) {
      for (;;)
        if (auto pushed = push(d); !pushed) {
          EXPECT_TRUE(fails_with(pushed, errc::full));
          break;
        }
      return p.read([](const content& c) { return c.nodes.load(); }).value_or(0);
    };
    const auto pop = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i)
        ASSERT_TRUE(succeeds(p.update(
            [](content& c) {
              node* const n = c.top;
              c.top = n->next.load();
              c.nodes -= 1;
              destroy(n);
            },
            ordered)));
    };
    const auto first = fill(durable);
    EXPECT_GT(first, 200u);
    for (int round = 0; round < 3; ++round) {
      pop(round == 0 ? 1 : first / 2);
      if (round == 2) {
        std::jthread([&] {
          EXPECT_EQ(fill(ordered), first) << "what one thread freed is not another's to take";
        });
      } else {
        EXPECT_EQ(fill(round == 0 ? ordered : durable), first) << "round " << round;
      }
    }
    pop(first);
    ASSERT_TRUE(succeeds(p.sync()));
    EXPECT_EQ(fill(ordered), first) << "filled by ordered commits";
    ASSERT_TRUE(succeeds(p.close()));
    p = open_pool<content>(dir.file("pool"), options(s));
    EXPECT_EQ(audit(p).used_blocks, first + 1);
    EXPECT_EQ(p.read([](const content& c) {
                 std::uint64_t found = 0;
                 for (const node* n = c.top; n != nullptr; n = n->next) ++found;
                 return found;
               }).value_or(0),
              first);
  });
}

TEST_P(ordered_commits, may_be_larger_than_the_log) {
  under_each_policy([](const setting& s) {
    const time_limit limit(60);
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(s, 4096));
    const auto right = [](const content& c, std::uint64_t n) {
      for (const auto& b : c.big)
        if (b != n) return false;
      return is(c, n);
    };
    std::uint64_t n = 0;
    const auto before = p.counters().log_spills;
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 5; ++i) {
        ++n;
        ASSERT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered)));
      }
      ++n;
      ASSERT_TRUE(succeeds(p.update(
          [&](content& c) {
            set(c, n);
            for (auto& b : c.big) b = n;
          },
          ordered)));
      ASSERT_TRUE(p.read([&](const content& c) { return right(c, n); }).value_or(false)) << n;
      std::jthread([&] {
        EXPECT_TRUE(p.read([&](const content& c) { return right(c, n); }).value_or(false)) << n;
      });
    }
    ASSERT_TRUE(succeeds(p.close()));
    if (s.mechanism == "default") {
      EXPECT_EQ(p.counters().log_spills - before, 4u);
    }
    p = open_pool<content>(dir.file("pool"), options(s));
    EXPECT_TRUE(p.read([&](const content& c) { return right(c, n); }).value_or(false));
    EXPECT_EQ(audit(p).used_blocks, 1u);
  });
}

TEST_P(ordered_commits, of_a_thread_that_has_ended_are_in_nobodys_way) {
  under_each_policy([](const setting& s) {
    for (const bool background : {true, false}) {
      const time_limit limit(60);
      scratch_directory dir;
      auto o = options(s);
      o.engine.background = background;
      auto p = open_pool<content>(dir.file("pool"), o);
      for (std::uint64_t n = 1; n <= 40; ++n) {
        std::jthread([&] {
          EXPECT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered)));
          EXPECT_TRUE(succeeds(p.update([&](content& c) { c.cells[n].value = n; }, ordered)));
        });
        if (n % 4 == 0) {
          EXPECT_TRUE(p.read([&](const content& c) {
                         return is(c, n) && c.cells[n].value == n;
                       }).value_or(false))
              << n;
        }
        if (n % 4 == 1) {
          EXPECT_TRUE(succeeds(p.update([&](content& c) { c.cells[0].value += c.count.value; },
                                        n % 8 == 1 ? ordered : durable)));
        }
      }
    }
  });
}

TEST_P(ordered_commits, are_kept_by_close_and_by_the_destructor) {
  under_each_policy([](const setting& s) {
    for (const bool background : {true, false}) {
      const time_limit limit(60);
      scratch_directory dir;
      auto o = options(s);
      o.engine.background = background;
      std::uint64_t n = 0;
      for (int session = 0; session < 8; ++session) {
        auto p = open_pool<content>(dir.file("pool"), o);
        ASSERT_TRUE(p.read([&](const content& c) { return is(c, n); }).value_or(false))
            << "session " << session << ", " << n;
        for (int i = 0; i < 1 + 37 * session; ++i) {
          ++n;
          ASSERT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered)));
        }
        ++n;
        std::jthread(
            [&] { EXPECT_TRUE(succeeds(p.update([&](content& c) { set(c, n); }, ordered))); });
        if (session % 2 == 0) {
          ASSERT_TRUE(succeeds(p.close()));
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(all, ordered_commits,
                         ::testing::Combine(::testing::ValuesIn(known_of({"default", "redo"})),
                                            ::testing::Values("adr", "process", "file")),
                         setting_name);

// The cost of ordered commits, on media that count fences. Counters are exact only while no thread
// works, so tests that read them in between have no background thread.
class cost_of : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static pool_options options(concurrency policy) {
    auto o = setting{"default", std::get<1>(GetParam()), policy}.options(4u << 20);
    o.engine.log_size = 256 << 10, o.engine.log_count = 2;
    return o;
  }
  // The policies that the test uses on this medium.
  template <class Body>
  static void under_each_policy(Body&& body) {
    for (const concurrency policy : all_policies) {
      SCOPED_TRACE(name_of(policy));
      body(policy);
    }
  }
  static void swap(pool<content>& p, std::uint64_t i, durability d) {
    ASSERT_TRUE(succeeds(p.update(
        [&](content& c) {
          auto &a = c.cells[i % 64].value, &b = c.cells[(i * 7 + 3) % 64].value;
          const std::uint64_t was = a;
          a = b.load() + 1;
          b = was;
        },
        d)));
  }
};

// Without a background thread the commits themselves make deferred commits durable, 256 at a time.
TEST_P(cost_of, ordered_commits_is_a_fence_in_256) {
  under_each_policy([](concurrency policy) {
    scratch_directory dir;
    auto o = options(policy);
    o.engine.background = false;
    auto p = open_pool<content>(dir.file("pool"), o);
    swap(p, 0, ordered);
    ASSERT_TRUE(succeeds(p.sync()));
    const auto before = p.counters();
    for (std::uint64_t i = 0; i < 1024; ++i) swap(p, i, ordered);
    const auto after = p.counters();
    EXPECT_EQ(after.commits - before.commits, 1024u);
    EXPECT_EQ(after.truncations, before.truncations) << "choose a larger log";
    EXPECT_EQ(after.fences - before.fences, 4u);
    EXPECT_EQ(after.streamed_bytes, before.streamed_bytes);
    EXPECT_GE(after.flushed_lines - before.flushed_lines, 1024u) << "the records";
  });
}

TEST_P(cost_of, ordered_commits_is_a_fence_in_100_microseconds_with_a_thread_in_the_background) {
  under_each_policy([](concurrency policy) {
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), options(policy));
    const auto before = p.counters();
    const auto begin = steady_clock::now();
    constexpr std::uint64_t all = 20'000;
    for (std::uint64_t i = 0; i < all; ++i) swap(p, i, ordered);
    ASSERT_TRUE(succeeds(p.close()));  // the background thread has finished counting
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin).count();
    const auto after = p.counters();
    const std::uint64_t fences = after.fences - before.fences,
                        cutting = 3 * (after.truncations - before.truncations);
    std::printf(
        "  %s: %.2f fences per thousand ordered commits, %lu of %lu for cutting the log; %.0f ns a "
        "commit\n",
        name_of(policy), static_cast<double>(fences) * 1000 / all, cutting, fences,
        static_cast<double>(took) * 1000 / all);
    EXPECT_LE(fences, cutting * 2 + static_cast<std::uint64_t>(took) / 100 + 10);
    EXPECT_LT(fences, all / 10) << "they are not gathered";
  });
}

TEST_P(cost_of, reads_and_aborts_is_no_fence) {
  under_each_policy([](concurrency policy) {
    scratch_directory dir;
    auto o = options(policy);
    o.engine.background = false;
    auto p = open_pool<content>(dir.file("pool"), o);
    for (const bool after_ordered : {false, true}) {
      if (after_ordered) swap(p, 1, ordered);
      ASSERT_TRUE(succeeds(p.sync()));
      const auto before = p.counters();
      for (std::uint64_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(p.read([](const content& c) { return c.count.value.load(); }).has_value());
        EXPECT_FALSE(p.update([](content& c) { c.count.value = 1, cancel("no"); },
                              i % 2 == 0 ? ordered : durable)
                         .has_value());
        EXPECT_TRUE(succeeds(p.update([](content&) {}, i % 2 == 0 ? ordered : durable)));
        if (i % 100 == 0) {
          EXPECT_TRUE(succeeds(p.sync()));
        }
      }
      const auto after = p.counters();
      EXPECT_EQ(after.reads - before.reads, 1000u);
      EXPECT_EQ(after.aborts - before.aborts, 1000u);
      EXPECT_EQ(after.fences, before.fences);
      EXPECT_EQ(after.flushed_lines, before.flushed_lines);
      EXPECT_EQ(after.streamed_bytes, before.streamed_bytes);
    }
  });
}

TEST_P(cost_of, a_durable_commit_is_one_fence_and_its_lines) {
  under_each_policy([](concurrency policy) {
    scratch_directory dir;
    auto o = options(policy);
    o.engine.background = false;
    auto p = open_pool<content>(dir.file("pool"), o);
    for (const bool after_ordered : {false, true}) {
      SCOPED_TRACE(after_ordered);
      for (std::uint64_t i = 0; i < 300; ++i) swap(p, i, durable);  // flush what there was
      if (after_ordered) swap(p, 1, ordered);
      ASSERT_TRUE(succeeds(p.sync()));
      const auto before = p.counters();
      for (std::uint64_t i = 0; i < 500; ++i) swap(p, i, durable);
      const auto after = p.counters();
      EXPECT_EQ(after.truncations, before.truncations) << "choose a larger log";
      EXPECT_EQ(after.fences - before.fences, 500u);
      const auto streamed = (after.streamed_bytes - before.streamed_bytes) / 64,
                 flushed = after.flushed_lines - before.flushed_lines;
      // There all threads share a log, and one flushes for all.
      const bool on_file = o.engine.media == "file";
      EXPECT_GE(on_file ? flushed : streamed, 500u);
      // Checksum deltas take a second line, unless all words lie in one block.
      EXPECT_LE(on_file ? flushed : streamed, on_file ? 1000u : 500u);
      // Home lines of earlier swaps, two each, are flushed in batches of some 256, before fences
      // that there are anyway.
      EXPECT_LE(on_file ? streamed : flushed, on_file ? 0u : 2 * 500u + 256);
    }
  });
}

TEST_P(cost_of, a_sync_is_one_fence_if_there_is_something_to_do) {
  under_each_policy([](concurrency policy) {
    scratch_directory dir;
    auto o = options(policy);
    o.engine.background = false;
    auto p = open_pool<content>(dir.file("pool"), o);
    const auto fences_of = [&](auto&& work) {
      const auto before = p.counters().fences;
      work();
      return p.counters().fences - before;
    };
    EXPECT_EQ(fences_of([&] { EXPECT_TRUE(succeeds(p.sync())); }), 0u);
    for (std::uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(fences_of([&] { swap(p, i, ordered), swap(p, i + 1, ordered); }), 0u);
      EXPECT_NE(p.core().state().deferred_logs.load(), 0u);
      EXPECT_EQ(
          fences_of([&] { EXPECT_TRUE(succeeds(i % 2 == 0 ? p.sync() : p.wait(p.committed()))); }),
          1u);
      EXPECT_EQ(p.core().state().deferred_logs.load(), 0u) << "something is not durable";
      EXPECT_EQ(fences_of([&] { EXPECT_TRUE(succeeds(p.sync())); }), 0u);
    }
    swap(p, 1, ordered);
    EXPECT_LE(fences_of([&] { swap(p, 2, durable); }), 2u)
        << "what was ordered before it, and its own";
    EXPECT_EQ(p.core().state().deferred_logs.load(), 0u)
        << "a durable commit returned before an ordered one ahead of it was durable";
  });
}

INSTANTIATE_TEST_SUITE_P(all, cost_of,
                         ::testing::Combine(::testing::Values("default"),
                                            ::testing::Values("adr", "file")),
                         setting_name);

// Transfers between accounts, by ordered and durable commits of four threads. The sum that readers
// see never changes.
struct bank {
  static constexpr std::uint64_t accounts = 32, each = 1000;
  field<std::uint64_t> money[accounts];
  field<std::uint64_t> opened;
};

TEST(ordered_transfers, keep_the_sum_for_concurrent_readers) {
  const time_limit limit(120);
  scratch_directory dir;
  const setting s{"default", "adr"};
  auto o = s.options(2u << 20);
  o.engine.log_size = 8192, o.engine.log_count = 5;
  auto p = open_pool<bank>(dir.file("pool"), o);
  ASSERT_TRUE(succeeds(p.update([](bank& b) {
    for (auto& m : b.money) m = bank::each;
  })));
  const auto sum_of = [](const bank& b) {
    std::uint64_t sum = 0;
    for (const auto& m : b.money) sum += m;
    return sum;
  };
  std::atomic<std::uint64_t> transfers{0}, reads{0};
  const auto end = steady_clock::now() + std::chrono::seconds(1);
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      base::rng random(t);
      while (steady_clock::now() < end) {
        const auto choice = random.below(16);
        if (choice < 3) {
          const auto sum = p.read(sum_of);
          if (!sum || *sum != bank::accounts * bank::each)
            ADD_FAILURE() << "a reader saw " << sum.value_or(0);
          ++reads;
          continue;
        }
        const std::uint64_t from = random.below(bank::accounts), to = random.below(bank::accounts),
                            amount = random.below(5);
        const auto done = p.update(
            [&](bank& b) {
              if (b.money[from] < amount) return;
              b.money[from] -= amount;
              b.money[to] += amount;
            },
            choice < 6 ? durable : ordered);
        EXPECT_TRUE(succeeds(done));
        if (choice == 15 && random.below(8) == 0) {
          EXPECT_TRUE(succeeds(p.sync()));
        }
        ++transfers;
      }
    });
  threads.clear();
  std::printf("  %lu transfers, %lu reads\n", transfers.load(), reads.load());
  EXPECT_GT(transfers, 1000u);
  EXPECT_GT(reads, 100u);
  EXPECT_EQ(p.read(sum_of).value_or(0), bank::accounts * bank::each);
  ASSERT_TRUE(succeeds(p.close()));
  p = open_pool<bank>(dir.file("pool"), o);
  EXPECT_EQ(p.read(sum_of).value_or(0), bank::accounts * bank::each);
}

// More threads than logs. Threads wait for a log, for a lock of an ordered commit, and for that
// commit to become durable; these waits must not form a cycle.
TEST(ordered_transfers, of_eight_threads_on_two_logs_do_not_hang) {
  const time_limit limit(120);
  for (const bool background : {true, false}) {
    scratch_directory dir;
    auto o = setting{"default", "process"}.options(2u << 20);
    o.engine.log_size = 4096, o.engine.log_count = 2, o.engine.background = background;
    auto p = open_pool<content>(dir.file("pool"), o);
    const auto end = steady_clock::now() + std::chrono::milliseconds(600);
    std::atomic<std::uint64_t> commits{0};
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        base::rng random(t);
        for (std::uint64_t mine = 0; steady_clock::now() < end;) {
          const std::uint64_t which = random.below(8), other = random.below(8);
          ++mine;
          EXPECT_TRUE(succeeds(p.update(
              [&](content& c) {
                c.cells[which].value += 1;
                c.cells[8 + other].value += 1;
                c.cells[16 + t].value = mine;
              },
              random.below(3) == 0 ? durable : ordered)));
          ++commits;
          // Meanwhile another thread takes its log.
          if (random.below(50) == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
    threads.clear();
    std::printf("  %lu commits\n", commits.load());
    const auto sums = p.read([](const content& c) {
      std::array<std::uint64_t, 3> s{};
      for (std::size_t i = 0; i < 24; ++i) s[i / 8] += c.cells[i].value;
      return s;
    });
    ASSERT_TRUE(succeeds(sums));
    for (const std::uint64_t sum : *sums) EXPECT_EQ(sum, commits.load());
    EXPECT_GT(commits, 100u);
  }
}

// Two threads count, and record the other's count that they see. The process is killed at any time.
struct alignas(64) counter {
  field<std::uint64_t> count;
  field<std::uint64_t> other;  // the other thread's count, as this commit saw it
  cell twin;                   // equals `count`; on another line
};
struct counters_root {
  counter of[2];
};
struct shared_counts {
  std::atomic<std::uint64_t> kept[2];  // counts that a sync or a durable commit has made durable
  std::atomic<std::uint64_t> failed;
};

// What is wrong with the recovered counts; empty: nothing.
std::string problem_of(const counters_root& r, const shared_counts* shared) {
  for (std::size_t t = 0; t < 2; ++t) {
    const std::string who =
        "thread " + std::to_string(t) + ": " + std::to_string(r.of[t].count) + " commits found, ";
    if (r.of[t].count < shared->kept[t])
      return who + std::to_string(shared->kept[t]) + " had been synced";
    if (r.of[t].twin.value != r.of[t].count) return who + "half of one";
    if (r.of[t].other > r.of[1 - t].count)
      return who + "which saw " + std::to_string(r.of[t].other) + " of the other's, that has " +
             std::to_string(r.of[1 - t].count);
  }
  return std::string();
}

class killed_after_sync : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(killed_after_sync, keeps_what_the_sync_covered_and_a_prefix_of_the_rest) {
  const time_limit limit(240);
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  scratch_directory dir;
  auto* const shared = static_cast<shared_counts*>(::mmap(
      nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  auto o = setting{std::get<0>(GetParam()), std::get<1>(GetParam())}.options(512 << 10);
  o.engine.log_size = 4096, o.engine.log_count = 2;
  std::uint64_t beyond = 0;
  for (std::uint64_t kill = 0, kills = count_from("STELE_ORDERED_KILLS", 50); kill < kills;
       ++kill) {
    o.engine.background = random.below(4) != 0;
    const std::uint64_t sync_every = 1 + random.below(200), child_seed = random(),
                        alive = random.below(std::uint64_t{128} << random.below(7));
    const std::uint64_t before = shared->kept[0] + shared->kept[1];
    {
      child writer([&](const word_sender& send) {
        auto p = open_pool<counters_root>(dir.file("pool"), o);
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < 2; ++t)
          threads.emplace_back([&, t] {
            base::rng mine(child_seed + t);
            std::uint64_t n =
                p.read([&](const counters_root& r) { return r.of[t].count.load(); }).value_or(0);
            while (shared->failed == 0) {
              ++n;
              const bool is_durable = mine.below(64) == 0;
              const auto done = p.update(
                  [&](counters_root& r) {
                    r.of[t].count = n;
                    r.of[t].other = r.of[1 - t].count;
                    r.of[t].twin.value = n;
                  },
                  is_durable ? durable : ordered);
              const bool synced = done && mine.below(sync_every) == 0;
              if (!done || (synced && !p.sync())) ++shared->failed;
              if (is_durable || synced) shared->kept[t] = n;
            }
          });
        send(1);
      });
      std::uint64_t word;
      ASSERT_TRUE(writer.receive(word)) << "the child could not open the pool";
      if (random.below(2) == 0)
        ::usleep(static_cast<useconds_t>(alive));
      else
        for (int i = 0; i < 5000 && shared->kept[0] + shared->kept[1] == before; ++i)
          ::usleep(10);  // right after a sync
      writer.kill_and_drain(0);
    }
    ASSERT_EQ(shared->failed, 0u);
    if (random.below(4) == 0) continue;  // the next writer recovers
    auto p = open_pool<counters_root>(dir.file("pool"), o);
    const auto wrong = p.read([&](const counters_root& r) { return problem_of(r, shared); });
    ASSERT_TRUE(succeeds(wrong));
    ASSERT_EQ(*wrong, "") << "after " << kill + 1 << " kills";
    ASSERT_TRUE(succeeds(p.read([&](const counters_root& r) {
      // What was recovered must stay.
      for (std::size_t t = 0; t < 2; ++t)
        beyond += r.of[t].count - shared->kept[t], shared->kept[t] = r.of[t].count;
    })));
  }
  std::printf("  %lu and %lu commits, %lu found that no sync had covered; STELE_SEED=%lu\n",
              shared->kept[0].load(), shared->kept[1].load(), beyond, seed);
  EXPECT_GT(shared->kept[0] + shared->kept[1], 1000u);
  ::munmap(shared, sizeof(shared_counts));
}

INSTANTIATE_TEST_SUITE_P(all, killed_after_sync,
                         ::testing::Combine(::testing::ValuesIn(known_of({"default", "redo"})),
                                            ::testing::Values("adr", "process", "file")),
                         setting_name);

}  // namespace
}  // namespace stele::testing
