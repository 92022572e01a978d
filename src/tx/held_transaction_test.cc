// A transaction that its caller holds: each call in each state, moves, ends without a call, errors
// and exceptions. tests/conformance/held_transactions_test.cc has the mechanisms and policies.
#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <stele/pool.h>
#include <stele/snapshot.h>
#include <tx/runtime.h>

#include <new>
#include <optional>
#include <thread>

namespace stele::testing {
namespace held {

struct block {
  field<std::uint64_t> words[2048];
};
struct counters {
  field<std::uint64_t> a;
  field<std::uint64_t> unused[15];
  field<std::uint64_t> b;  // on another line
  field<block*> first;
};
using state = transaction_state;

template <class R>
auto value_of(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

class held_transaction : public ::testing::Test {
 protected:
  held_transaction() { reopen({.create_size = 1u << 20}); }

  void reopen(const pool_options& options) {
    pool_.reset();
    std::filesystem::remove(directory_.file("pool"));
    pool_.emplace(value_of(pool<counters>::open(directory_.file("pool"), options)));
  }
  transaction begin() { return value_of(pool_->begin()); }
  std::uint64_t a() const {
    return value_of(pool_->read([](const counters& r) { return r.a.load(); }));
  }
  // An update in another thread.
  template <class Body>
  void elsewhere(Body&& body) {
    std::thread([&] { value_of(pool_->update(body)); }).join();
  }
  // `t` has lost: another thread has changed what it has read.
  void lose(transaction& t) {
    const std::uint64_t before = pool_->root(t).a;
    pool_->root(t).b = before;
    elsewhere([](counters& r) { r.a += 1; });
    refused_with(t.commit(), errc::conflict);
    ASSERT_EQ(t.state(), state::lost);
  }
  static void refused_with(const result<>& r, errc code) {
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, code) << r.error().message;
    EXPECT_FALSE(r.error().message.empty());
  }
  // None of the calls that need an open or a lost transaction does anything.
  void refuses_all(transaction& t) {
    refused_with(t.commit(), errc::invalid_argument);
    refused_with(t.retry(), errc::invalid_argument);
    EXPECT_EQ(t.bytes_allocated(), 0);
    EXPECT_THROW((void)pool_->root(t), failure);
    const state before = t.state();
    t.roll_back();
    EXPECT_EQ(t.state(), before);
    EXPECT_FALSE(in_transaction());
  }

  scratch_directory directory_;
  std::optional<pool<counters>> pool_;
};

TEST_F(held_transaction, of_no_pool_refuses_each_call) {
  transaction t;
  EXPECT_EQ(t.state(), state::none);
  refuses_all(t);
}

TEST_F(held_transaction, commits_what_it_has_stored) {
  transaction t = begin();
  EXPECT_EQ(t.state(), state::open);
  EXPECT_TRUE(in_transaction());
  pool_->root(t).a = 7;
  EXPECT_EQ(pool_->root(t).a, 7u);
  value_of(t.commit());
  EXPECT_EQ(t.state(), state::ended);
  EXPECT_EQ(a(), 7u);
  refuses_all(t);
}

TEST_F(held_transaction, leaves_nothing_when_it_is_rolled_back_or_destroyed) {
  transaction t = begin();
  pool_->root(t).a = 7;
  t.roll_back();
  EXPECT_EQ(t.state(), state::ended);
  refuses_all(t);
  {
    const transaction dropped = begin();
    pool_->update([](counters& r) { r.a = 8; }).value();
    EXPECT_EQ(std::as_const(*pool_).root(dropped).a, 8u);
  }
  EXPECT_FALSE(in_transaction());
  EXPECT_EQ(a(), 0u);
}

TEST_F(held_transaction, leaves_nothing_when_an_exception_passes_it) {
  EXPECT_THROW(
      {
        transaction t = begin();
        pool_->root(t).a = 7;
        throw std::runtime_error("of the program");
      },
      std::runtime_error);
  EXPECT_FALSE(in_transaction());
  EXPECT_EQ(a(), 0u);
}

TEST_F(held_transaction, goes_on_where_it_is_moved) {
  transaction from = begin();
  pool_->root(from).a = 7;
  transaction to = std::move(from);
  EXPECT_EQ(from.state(), state::none);
  EXPECT_THROW((void)pool_->root(from), failure);
  refused_with(from.commit(), errc::invalid_argument);
  refused_with(from.retry(), errc::invalid_argument);
  EXPECT_EQ(to.state(), state::open);
  transaction last;
  last = std::move(to);
  EXPECT_EQ(to.state(), state::none);
  pool_->root(last).b = 8;
  value_of(last.commit());
  EXPECT_EQ(a(), 7u);
}

TEST_F(held_transaction, is_rolled_back_by_an_assignment) {
  transaction t = begin();
  pool_->root(t).a = 7;
  transaction& same = t;
  t = std::move(same);
  EXPECT_EQ(t.state(), state::open);
  t = transaction();
  EXPECT_EQ(t.state(), state::none);
  EXPECT_FALSE(in_transaction());
  t = begin();  // the former one has ended
  value_of(t.commit());
  EXPECT_EQ(a(), 0u);
}

TEST_F(held_transaction, that_lost_a_commit_takes_only_retry_and_roll_back) {
  transaction t = begin();
  lose(t);
  refused_with(t.commit(), errc::conflict);
  EXPECT_EQ(t.state(), state::lost);
  t.roll_back();
  EXPECT_EQ(t.state(), state::ended);
  refuses_all(t);

  t = begin();
  lose(t);
  value_of(t.retry());
  EXPECT_EQ(t.state(), state::open);
  EXPECT_EQ(pool_->root(t).a, 2u);
  pool_->root(t).a = 10;
  value_of(t.commit());
  EXPECT_EQ(a(), 10u);
}

TEST_F(held_transaction, that_lost_is_rolled_back_when_it_is_moved_and_destroyed) {
  {
    transaction t = begin();
    lose(t);
    const transaction other = std::move(t);
    EXPECT_EQ(other.state(), state::lost);
  }
  EXPECT_FALSE(in_transaction());
  elsewhere([](counters& r) { r.b = 5; });  // no lock of it is left
  EXPECT_EQ(a(), 1u);
}

TEST_F(held_transaction, cannot_commit_after_a_load_has_thrown_a_conflict) {
  transaction t = begin();
  pool_->root(t).b = pool_->root(t).a.load();
  elsewhere([](counters& r) { r.a += 1, r.unused[8] = 1; });
  EXPECT_THROW((void)pool_->root(t).unused[8].load(), conflict);
  EXPECT_EQ(t.state(), state::lost);
  refused_with(t.commit(), errc::conflict);
  value_of(t.retry());
  EXPECT_EQ(pool_->root(t).a, 1u);
  value_of(t.commit());
}

TEST_F(held_transaction, can_be_retried_without_a_conflict) {
  transaction t = begin();
  pool_->root(t).a = 7;
  value_of(t.retry());
  EXPECT_EQ(pool_->root(t).a, 0u);
  pool_->root(t).b = 1;
  value_of(t.commit());
  EXPECT_EQ(a(), 0u);
}

TEST_F(held_transaction, is_joined_by_updates_and_reads_of_its_pool) {
  transaction t = begin();
  pool_->root(t).a = 1;
  value_of(pool_->update([](counters& r) { r.a += 1; }));
  EXPECT_EQ(a(), 2u);
  const auto cancelled = pool_->update(
      [](counters&) -> result<> { return std::unexpected(error{errc::cancelled, "by its body"}); });
  refused_with(cancelled, errc::cancelled);  // the holder decides
  EXPECT_THROW((void)pool_->update([](counters&) { cancel("thrown"); }), failure);
  EXPECT_EQ(t.state(), state::open);
  value_of(t.commit());
  EXPECT_EQ(a(), 2u);
}

TEST_F(held_transaction, refuses_another_one_in_its_thread) {
  auto other = value_of(pool<counters>::open(directory_.file("other"), {.create_size = 1u << 20}));
  transaction t = begin();
  for (pool<counters>* p : {&*pool_, &other}) {
    const auto second = p->begin(), read = p->begin_read();
    ASSERT_FALSE(second || read);
    EXPECT_EQ(second.error().code, errc::nested);
    EXPECT_EQ(read.error().code, errc::nested);
  }
  refused_with(other.update([](counters& r) { r.a = 1; }), errc::nested);
  EXPECT_THROW((void)other.root(t), failure);
  refused_with(pool_->grow(4u << 20), errc::nested);
  refused_with(pool_->backup(directory_.file("copy")), errc::nested);
  EXPECT_FALSE(take_snapshot(*pool_).has_value());
  refused_with(pool_->close(), errc::in_use);
  EXPECT_EQ(t.state(), state::open);
  pool_->root(t).a = 3;
  value_of(t.commit());
  EXPECT_EQ(a(), 3u);
  value_of(pool_->update([&](counters&) { EXPECT_EQ(pool_->begin().error().code, errc::nested); }));
  auto snapshot = value_of(take_snapshot(*pool_));
  value_of(snapshot.read([&] { EXPECT_EQ(pool_->begin().error().code, errc::nested); }));
}

TEST_F(held_transaction, that_reads_sees_one_state_and_stores_nothing) {
  for (const code_between between : {code_between::may_wait, code_between::computes_only}) {
    transaction t = value_of(std::as_const(*pool_).begin_read(between));
    const counters& root = std::as_const(*pool_).root(t);
    EXPECT_EQ(root.a, 0u);
    try {
      pool_->root(t).a = 1;
      ADD_FAILURE() << "a store in a read";
    } catch (const failure& f) {
      EXPECT_EQ(f.why().code, errc::read_only);
    }
    EXPECT_THROW((void)make<block>(), failure);
    value_of(t.commit());
    refuses_all(t);
  }
}

TEST_F(held_transaction, that_reads_can_lose_and_sees_the_new_state_then) {
  transaction t = value_of(pool_->begin_read());
  EXPECT_EQ(std::as_const(*pool_).root(t).a, 0u);
  elsewhere([](counters& r) { r.a = 1, r.b = 1; });
  EXPECT_THROW((void)std::as_const(*pool_).root(t).b.load(), conflict);
  EXPECT_EQ(t.state(), state::lost);
  value_of(t.retry());
  EXPECT_EQ(std::as_const(*pool_).root(t).a + std::as_const(*pool_).root(t).b, 2u);
  value_of(t.commit());
}

TEST_F(held_transaction, that_must_not_wait_is_none_where_it_would) {
  transaction t = detail::hold_read_at_once(pool_->core());
  EXPECT_EQ(t.state(), state::open);
  EXPECT_EQ(std::as_const(*pool_).root(t).a, 0u);
  EXPECT_EQ(detail::hold_read_at_once(pool_->core()).state(), state::none);
  value_of(t.commit());
  std::thread([&] {  // it has no log yet
    EXPECT_EQ(detail::hold_read_at_once(pool_->core()).state(), state::none);
    EXPECT_FALSE(in_transaction());
  })
      .join();
}

TEST_F(held_transaction, counts_the_bytes_that_it_has_allocated) {
  transaction t = begin();
  EXPECT_EQ(t.bytes_allocated(), 0);
  pool_->root(t).first = make<block>();
  const std::int64_t bytes = t.bytes_allocated();
  EXPECT_GE(bytes, static_cast<std::int64_t>(sizeof(block)));
  value_of(t.commit());
  EXPECT_EQ(t.bytes_allocated(), 0);
  t = begin();
  destroy(pool_->root(t).first.load());
  pool_->root(t).first = nullptr;
  EXPECT_EQ(t.bytes_allocated(), -bytes);
  t.roll_back();
}

// Makes blocks in a chain of attempts until one has `count` of them.
result<> fill(pool<counters>& p, transaction& t, unsigned count) {
  for (;;) {
    try {
      for (unsigned i = 0; i < count; ++i) p.root(t).first = make<block>();
      if (auto done = t.commit(); done || t.state() != state::lost) return done;
    } catch (const conflict&) {  // free memory may be scattered
    } catch (const failure& f) {
      if (f.why().code != errc::full) throw;
      EXPECT_EQ(t.state(), state::open);
    }
    if (auto again = t.retry(); !again) return again;
  }
}

TEST_F(held_transaction, that_finds_no_room_makes_the_pool_grow) {
  reopen({.create_size = 1u << 20, .max_size = 16u << 20});
  transaction t = begin();
  value_of(fill(*pool_, t, 200));  // 3 MB
  EXPECT_EQ(t.state(), state::ended);
  EXPECT_GT(pool_->space().size_bytes, 3u << 20);
}

TEST_F(held_transaction, that_finds_no_room_has_ended_when_the_pool_cannot_grow) {
  transaction t = begin();
  refused_with(fill(*pool_, t, 200), errc::full);
  EXPECT_EQ(t.state(), state::ended);
  refuses_all(t);
  EXPECT_EQ(pool_->space().used_bytes, pool_->space().used_bytes);
  t = begin();
  value_of(fill(*pool_, t, 3));  // the pool is usable, and nothing of it is left
}

TEST_F(held_transaction, is_rolled_back_when_its_thread_ends) {
  transaction left;
  std::thread([&] {
    left = begin();
    pool_->root(left).a = 7;
  }).join();
  EXPECT_EQ(left.state(), state::ended);
  EXPECT_EQ(a(), 0u);
  value_of(pool_->update([](counters& r) { r.a = 1; }));
  value_of(pool_->close());
}

TEST_F(held_transaction, ends_the_program_in_another_thread) {
  transaction t = begin();
  EXPECT_DEATH(std::thread([&] { t.roll_back(); }).join(), "in the thread that began it");
  EXPECT_DEATH(std::thread([&] { (void)t.commit(); }).join(), "in the thread that began it");
  EXPECT_DEATH(std::thread([&] { (void)t.retry(); }).join(), "in the thread that began it");
  EXPECT_DEATH(std::thread([&] { const transaction moved = std::move(t); }).join(),
               "by the thread that began it");
  std::thread([&] {
    EXPECT_THROW((void)pool_->root(t), failure);
    EXPECT_EQ(t.bytes_allocated(), 0);
  }).join();
  value_of(t.commit());
}

TEST_F(held_transaction, passes_on_what_a_destructor_has_thrown) {
  transaction t = begin();
  pool_->root(t).a = 7;
  try {
    throw std::bad_alloc();
  } catch (...) {
    detail::doom_transaction();  // as a container's destructor does
  }
  EXPECT_THROW((void)t.commit(), std::bad_alloc);
  EXPECT_EQ(t.state(), state::ended);
  EXPECT_FALSE(in_transaction());
  t = begin();
  try {
    throw conflict{};
  } catch (...) {
    detail::doom_transaction();
  }
  refused_with(t.commit(), errc::conflict);
  value_of(t.retry());
  try {
    cancel("by a destructor");
  } catch (...) {
    detail::doom_transaction();
  }
  refused_with(t.commit(), errc::cancelled);
  refuses_all(t);
  EXPECT_EQ(a(), 0u);
}

TEST_F(held_transaction, is_refused_by_a_poisoned_and_by_a_closed_pool) {
  transaction t = begin();
  pool_->root(t).a = 1;
  pool_->core().state().poison(detail::pool_state::poison_cause::write_failed);
  refused_with(t.commit(), errc::poisoned);
  EXPECT_EQ(t.state(), state::ended);
  EXPECT_EQ(pool_->begin().error().code, errc::poisoned);
  (void)pool_->close();
  reopen({.create_size = 1u << 20});
  t = begin();
  lose(t);
  pool_->core().state().poison(detail::pool_state::poison_cause::write_failed);
  refused_with(t.retry(), errc::poisoned);
  EXPECT_EQ(t.state(), state::ended);
  EXPECT_FALSE(in_transaction());
  (void)pool_->close();
  reopen({.create_size = 1u << 20});
  value_of(pool_->close());
  EXPECT_FALSE(pool_->begin().has_value());
}

}  // namespace held
}  // namespace stele::testing
