// Transactions that their caller holds, on every mechanism and medium and under every policy: they
// commit whole or leave nothing, losers win at last, and what other threads do meanwhile goes on or
// waits as the policy says. The calls in each state: src/tx/held_transaction_test.cc.
#include <stele/kv.h>
#include <stele/map.h>
#include <stele/string.h>
#include <stele/vector.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <array>
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

namespace stele::testing {
namespace held_transactions {

struct block {
  field<std::uint64_t> words[512];
};
struct content {
  using pool_resident = void;
  field<std::uint64_t> a;
  field<std::uint64_t> unused[15];
  field<std::uint64_t> b;  // on another line
  field<std::uint64_t> also_unused[15];
  field<block*> last;
  vector<std::uint64_t> list;
  map<std::uint64_t, string> texts;
};
using state = transaction_state;

class held_transactions : public on_every_setting {
 protected:
  static std::uint64_t a_of(const pool<content>& p) {
    const auto got = p.read([](const content& c) { return c.a.load(); });
    EXPECT_TRUE(succeeds(got));
    return got.value_or(~0u);
  }
  static transaction begun(result<transaction> t) {
    EXPECT_TRUE(succeeds(t));
    return t ? std::move(*t) : transaction();
  }
  // Runs body(transaction&) until it has committed. Counts the attempts that were lost.
  template <class Body>
  static result<> until_committed(transaction& t, Body&& body, unsigned& lost) {
    for (;;) {
      try {
        body(t);
        if (auto done = t.commit(); done || t.state() != state::lost) return done;
      } catch (const conflict&) {
      } catch (const failure& f) {
        if (f.why().code != errc::full) return std::unexpected(f.why());
      }
      ++lost;
      if (auto again = t.retry(); !again) return again;
    }
  }
};

TEST_P(held_transactions, of_two_threads_that_conflict_both_win) {
  under_each_policy([](const setting& s) {
    constexpr std::uint64_t rounds = 40;
    for (const code_between between : {code_between::may_wait, code_between::computes_only}) {
      scratch_directory dir;
      auto p = open_pool<content>(dir.file("pool"), s.options());
      std::barrier both(2);
      std::mutex turn;  // external: the caller locks
      const auto add = [&] {
        both.arrive_and_wait();
        for (std::uint64_t i = 0; i < rounds; ++i) {
          std::unique_lock lock(turn, std::defer_lock);
          if (s.policy == concurrency::external) lock.lock();
          unsigned lost = 0;
          transaction t = begun(p.begin(durability::durable, between));
          EXPECT_TRUE(succeeds(until_committed(
              t,
              [&](transaction& now) {
                const std::uint64_t seen = p.root(now).a;
                if (i % 8 == 0) std::this_thread::yield();
                p.root(now).a = seen + 1;
                p.root(now).b += 1;
              },
              lost)));
          EXPECT_TRUE(s.policy == concurrency::stm || lost == 0);
        }
      };
      std::thread other(add);
      add();
      other.join();
      EXPECT_EQ(a_of(p), 2 * rounds);
      EXPECT_TRUE(succeeds(p.check()));
    }
  });
}

// Both have read before either stores, so one loses for certain.
TEST_P(held_transactions, a_loser_sees_the_winners_state_when_it_is_retried) {
  const setting s{std::get<0>(GetParam()), std::get<1>(GetParam())};
  scratch_directory dir;
  auto p = open_pool<content>(dir.file("pool"), s.options());
  transaction t = begun(p.begin());
  const std::uint64_t before = p.root(t).a;
  std::thread([&] {
    transaction winner = begun(p.begin());
    p.root(winner).a += 5;
    EXPECT_TRUE(succeeds(winner.commit()));
  }).join();
  bool thrown = false;
  try {
    p.root(t).a = before + 1;
    EXPECT_TRUE(fails_with(t.commit(), errc::conflict));
  } catch (const conflict&) {
    thrown = true;
  }
  EXPECT_EQ(t.state(), state::lost) << "thrown: " << thrown;
  ASSERT_TRUE(succeeds(t.retry()));
  EXPECT_EQ(p.root(t).a, 5u);
  p.root(t).a += 1;
  EXPECT_TRUE(succeeds(t.commit()));
  EXPECT_EQ(a_of(p), 6u);
}

TEST_P(held_transactions, are_ordered_or_durable_as_begin_was_told) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto o = s.options();
    {
      auto p = open_pool<content>(dir.file("pool"), o);
      for (std::uint64_t i = 1; i <= 20; ++i) {
        transaction t = begun(p.begin(i % 5 == 0 ? durability::durable : durability::ordered));
        p.root(t).a = i;
        p.root(t).list.push_back(i);
        ASSERT_TRUE(succeeds(t.commit()));
        EXPECT_EQ(a_of(p), i);
      }
      EXPECT_TRUE(succeeds(p.sync()));
      transaction open = begun(p.begin(durability::ordered));
      p.root(open).a = 100;
    }
    if (s.mechanism == "none") return;
    auto p = open_pool<content>(dir.file("pool"), o);
    EXPECT_EQ(a_of(p), 20u);
    EXPECT_TRUE(succeeds(p.check()));
  });
}

TEST_P(held_transactions, make_a_full_pool_grow) {
  under_each_policy([](const setting& s) {
    const bool fixed = s.mechanism == "log_structured" || s.mechanism.starts_with("archapt");
    scratch_directory dir;
    auto o = s.options(512u << 10);
    o.engine.log_size = 4096, o.engine.log_count = 2;
    if (!fixed) o.max_size = 8u << 20;
    auto p = open_pool<content>(dir.file("pool"), o);
    const std::size_t size = p.space().size_bytes;
    unsigned lost = 0;
    result<> done;
    std::uint64_t count = 0;
    for (; done && count < 400; count += done.has_value()) {  // 4 KiB each
      auto t = p.begin();
      ASSERT_TRUE(succeeds(t));
      done = until_committed(
          *t,
          [&](transaction& now) {
            p.root(now).a += 1;
            p.root(now).last = make<block>();
          },
          lost);
      EXPECT_EQ(t->state(), state::ended);
    }
    EXPECT_NE(lost, 0u);
    if (fixed) {
      EXPECT_TRUE(fails_with(done, errc::full));
    } else {
      EXPECT_TRUE(succeeds(done));
      EXPECT_GT(p.space().size_bytes, size);
    }
    EXPECT_EQ(a_of(p), count);
    audit(p);
  });
}

TEST_P(held_transactions, are_read_beside_without_their_changes) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), s.options());
    // External: no read beside an update. In place: readers wait for the whole update.
    if (s.policy == concurrency::external || p.core().in_place()) return;
    transaction t = begun(p.begin());
    p.root(t).a = 1;
    p.root(t).list.push_back(1);
    std::thread([&] {
      EXPECT_EQ(s.policy == concurrency::stm ? *p.read([](const content& c) { return c.b.load(); })
                                             : a_of(p),
                0u);
      transaction read = begun(p.begin_read());
      EXPECT_EQ(std::as_const(p).root(read).b, 0u);
      EXPECT_TRUE(succeeds(read.commit()));
    }).join();
    EXPECT_TRUE(succeeds(t.commit()));
    EXPECT_EQ(a_of(p), 1u);
  });
}

TEST_P(held_transactions, have_containers_and_stores_in_them) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), s.options());
    transaction t = begun(p.begin());
    const auto fill = [&] {
      for (std::uint64_t i = 0; i < 30; ++i) {
        p.root(t).list.push_back(i);
        p.root(t).texts[i] = "text " + std::to_string(i);
      }
    };
    fill();
    EXPECT_EQ(p.root(t).texts.size(), 30u);
    t.roll_back();
    t = begun(p.begin());
    EXPECT_EQ(p.root(t).list.size() + p.root(t).texts.size(), 0u);
    fill();
    ASSERT_TRUE(succeeds(t.commit()));
    EXPECT_EQ(*p.read([](const content& c) { return c.list.size() + c.texts.size(); }), 60u);
    EXPECT_TRUE(succeeds(p.check()));
    EXPECT_TRUE(succeeds(p.close()));

    auto opened = kv::open(dir.file("store"), s.options(2u << 20));
    ASSERT_TRUE(succeeds(opened));
    kv& store = *opened;
    auto named = store.open_store("named");
    ASSERT_TRUE(succeeds(named));
    for (const bool commits : {false, true}) {
      t = begun(store.begin());
      EXPECT_TRUE(succeeds(store.put("key", "value")));
      EXPECT_TRUE(succeeds(named->put_many(std::array{kv_pair{"a", "1"}, kv_pair{"b", "2"}})));
      EXPECT_EQ(store.get("key").value(), "value");
      EXPECT_TRUE(fails_with(store.open_store("another"), errc::nested));
      EXPECT_TRUE(fails_with(store.put("", "no key"), errc::invalid_argument));
      if (commits) {
        EXPECT_TRUE(succeeds(t.commit()));
      }
      t = transaction();
      EXPECT_EQ(store.contains("key").value(), commits);
      EXPECT_EQ(named->size().value(), commits ? 2u : 0u);
    }
    t = begun(store.begin_read());
    EXPECT_EQ(named->get("b").value(), "2");
    EXPECT_TRUE(succeeds(t.commit()));
    EXPECT_TRUE(succeeds(store.check()));
  });
}

// Each waits for the open transaction, or not at all; none sees a part of it.
TEST_P(held_transactions, go_on_beside_backup_growth_and_sync) {
  under_each_policy([](const setting& s) {
    const bool fixed = s.mechanism == "log_structured" || s.mechanism.starts_with("archapt");
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), s.options());
    transaction t = begun(p.begin());
    p.root(t).a = 1;
    std::atomic<bool> began{false};
    std::thread other([&] {
      began = true;
      if (s.mechanism != "log_structured") {
        EXPECT_TRUE(succeeds(p.backup(dir.file("copy"))));
      }
      if (!fixed) {
        EXPECT_TRUE(succeeds(p.grow(2u << 20)));
      }
      EXPECT_TRUE(succeeds(p.sync()));
      EXPECT_TRUE(succeeds(p.check()));
    });
    while (!began) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(fails_with(p.grow(2u << 20), errc::nested));
    EXPECT_TRUE(fails_with(p.close(), errc::in_use));
    p.root(t).b = 1;
    EXPECT_TRUE(succeeds(t.commit()));
    other.join();
    if (s.mechanism == "log_structured") return;
    auto o = s.options();
    o.create_size = 0;
    const auto copy = open_pool<content>(dir.file("copy"), o);
    const auto sum = copy.read([](const content& c) { return c.a + c.b; });
    ASSERT_TRUE(succeeds(sum));
    EXPECT_TRUE(*sum == 0 || *sum == 2) << *sum;
  });
}

TEST_P(held_transactions, of_a_parent_are_only_rolled_back_in_its_child) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<content>(dir.file("pool"), s.options());
    transaction t = begun(p.begin());
    p.root(t).a = 1;
    for (const bool commits : {false, true}) {
      child c([&](const word_sender&) {
        ::alarm(20);
        EXPECT_EQ(t.state(), state::open);
        if (p.core().state().file.mapping().fd >= 0) {
          EXPECT_THROW(p.root(t).a = 2, failure);
        }
        if (commits) {
          EXPECT_TRUE(fails_with(t.commit(), errc::poisoned));
        }
        t.roll_back();
        EXPECT_EQ(t.state(), state::ended);
        EXPECT_FALSE(in_transaction());
        EXPECT_TRUE(fails_with(p.begin(), errc::poisoned));
      });
      EXPECT_EQ(c.wait(), 0);
    }
    {
      child c([&](const word_sender&) {
        ::alarm(20);
        EXPECT_TRUE(fails_with(t.retry(), errc::poisoned));
        EXPECT_EQ(t.state(), state::ended);
      });
      EXPECT_EQ(c.wait(), 0);
    }
    p.root(t).b = 1;
    ASSERT_TRUE(succeeds(t.commit()));
    EXPECT_EQ(a_of(p), 1u);
    EXPECT_TRUE(succeeds(p.check()));
  });
}

INSTANTIATE_TEST_SUITE_P(all, held_transactions,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::Values("adr", "process", "file")),
                         setting_name);

}  // namespace held_transactions
}  // namespace stele::testing
