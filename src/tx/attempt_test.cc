// The tables of attempt.h, row by row: in which state an attempt is, and that its end leaves
// nothing of it.
#include <base/scratch_directory.h>
#include <gtest/gtest.h>
#include <stele/pool.h>
#include <stele/snapshot.h>
#include <tx/attempt.h>
#include <tx/long_read.h>
#include <tx/runtime.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace stele::testing {
namespace {

using base::scratch_directory;
using detail::attempt_state;
using detail::begin_status;
using detail::commit_status;
using detail::this_attempt;
using enum attempt_state;

struct counters {
  field<std::uint64_t> a;
  field<std::uint64_t> unused[15];
  field<std::uint64_t> b;  // on another line
};

template <class R>
auto value_of(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

attempt_state now() {
  return this_attempt.state();
}

class attempts : public ::testing::Test {
 protected:
  attempts() { reopen({.create_size = 1u << 20}); }

  void reopen(const pool_options& options) {
    pool_.reset();
    std::filesystem::remove(path_);
    pool_.emplace(value_of(pool<counters>::open(path_, options)));
  }
  detail::runtime& core() const { return pool_->core(); }
  begin_status begin(bool writes) const {
    return detail::begin_transaction(core(), writes, durability::durable);
  }
  void elsewhere(const std::function<void()>& body) const { std::thread(body).join(); }
  // Nothing of this thread's attempts is left, and other threads are not in its way, nor it in
  // theirs.
  void expect_nothing_left() {
    EXPECT_EQ(now(), none);
    EXPECT_FALSE(in_transaction());
    EXPECT_EQ(this_attempt.ended, 0u);
    EXPECT_EQ(this_attempt.moment, nullptr);
    EXPECT_EQ(this_attempt.held, nullptr);
    if (const auto* const v = this_attempt.context; v != nullptr) {
      EXPECT_FALSE(v->in_transaction.made() || v->reading.load() || v->holds_writer);
      EXPECT_FALSE(v->runs_alone);
      EXPECT_EQ(v->long_read, nullptr);
      EXPECT_EQ(v->foreign_moment, nullptr);
    }
    elsewhere([this] { value_of(pool_->update([](counters& r) { r.a += 1; })); });
    value_of(pool_->update([](counters& r) {
      EXPECT_EQ(now(), first);
      const detail::transaction& tx = *detail::this_access.running;
      EXPECT_FALSE(tx.wants_reclaim || tx.reclaim_tried || tx.exceeds_log);
      r.a += 1;
    }));
  }
  // Each attempt of a read or an update loses, until one is in `wanted`; that one throws.
  template <class Ready>
  void lose_until(bool writes, Ready&& ready) {
    const auto body = [&] {
      if (!ready()) throw conflict{};
      throw std::out_of_range("the state is reached");
    };
    if (writes)
      EXPECT_THROW((void)pool_->update([&](counters&) { body(); }), std::out_of_range);
    else
      EXPECT_THROW((void)pool_->read([&](const counters&) { body(); }), std::out_of_range);
  }

  scratch_directory directory_;
  const std::string path_ = directory_.file("pool");
  std::optional<pool<counters>> pool_;
};

TEST(attempt, follows_the_tables) {
  const std::vector<attempt_state> all = {none,      first, repeated, long_read, foreign_moment,
                                          at_moment, last,  lost,     between};
  std::set<std::pair<attempt_state, attempt_state>> rows = {
      {none, first},       {first, foreign_moment}, {first, at_moment},  // B1, B3, B5
      {between, repeated}, {between, long_read},    {between, foreign_moment},
      {first, last},       {between, none}};
  for (const attempt_state s : all) {
    if (!detail::runs(s)) continue;
    rows.insert({{s, none}, {s, lost}});            // E1 to E5
    if (s != at_moment) rows.insert({s, between});  // E6
  }
  for (const attempt_state from : all)
    for (const attempt_state to : all)
      EXPECT_EQ(detail::may_follow(from, to), rows.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
}

TEST_F(attempts, begin_and_end_with_nothing_left) {  // B1, E1
  for (const concurrency policy :
       {concurrency::stm, concurrency::single_writer, concurrency::external}) {
    reopen({.create_size = 1u << 20, .policy = policy});
    for (unsigned round = 0; round < 2; ++round) {  // the first begins at length
      value_of(pool_->update([&](counters& r) {
        EXPECT_EQ(now(), first);
        EXPECT_EQ(this_attempt.pool, &core());
        r.b += 1;
      }));
      expect_nothing_left();
      value_of(pool_->read([](const counters&) { EXPECT_EQ(now(), first); }));
      expect_nothing_left();
    }
  }
}

TEST_F(attempts, begin_at_once_or_not_at_all) {  // B2
  elsewhere([this] {
    transaction t = detail::hold_read_at_once(core());  // this thread has no log yet
    EXPECT_EQ(t.state(), transaction_state::none);
    EXPECT_EQ(now(), none);
    value_of(pool_->read([](const counters&) {}));
    t = detail::hold_read_at_once(core());
    EXPECT_EQ(t.state(), transaction_state::open);
    EXPECT_EQ(now(), first);
    EXPECT_EQ(detail::hold_read_at_once(core()).state(), transaction_state::none);
    EXPECT_EQ(now(), first);
    value_of(t.commit());
    EXPECT_EQ(now(), none);
  });
  expect_nothing_left();
}

TEST_F(attempts, at_a_foreign_moment) {  // B3
  const auto reads = value_of(pool<counters>::open_read_only(path_));
  value_of(reads.read([](const counters&) { EXPECT_EQ(now(), first); }));
  for (const bool commits : {true, false}) {
    ASSERT_EQ(
        detail::begin_transaction(reads.core(), false, durability::durable, code_between::may_wait),
        begin_status::started);
    EXPECT_EQ(now(), foreign_moment);
    EXPECT_NE(this_attempt.context->foreign_moment, nullptr);
    if (commits)
      EXPECT_EQ(detail::commit_transaction(), commit_status::committed);
    else
      detail::roll_back_transaction();
    expect_nothing_left();
  }
}

TEST_F(attempts, repeat_after_a_conflict) {  // B4, E2, E6
  std::vector<attempt_state> seen;
  value_of(pool_->update([&](counters& r) {
    seen.push_back(now());
    EXPECT_EQ(this_attempt.ended, seen.size() - 1);
    r.b += 1;
    if (seen.size() < 3) throw conflict{};
  }));
  EXPECT_EQ(seen, (std::vector{first, repeated, repeated}));
  expect_nothing_left();

  scratch_directory other_directory;
  auto other =
      value_of(pool<counters>::open(other_directory.file("pool"), {.create_size = 1u << 20}));
  ASSERT_EQ(begin(true), begin_status::started);
  detail::retry_transaction();
  EXPECT_EQ(now(), between);
  EXPECT_FALSE(in_transaction());
  const auto refused = other.update([](counters& r) { r.a += 1; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, errc::nested);
  EXPECT_EQ(now(), between);
  ASSERT_EQ(begin(true), begin_status::started);
  EXPECT_EQ(now(), repeated);
  EXPECT_EQ(detail::commit_transaction(), commit_status::committed);
  expect_nothing_left();
}

TEST_F(attempts, go_on_as_a_long_read) {  // B4, E2
  unsigned ended = 0;
  value_of(pool_->read([&](const counters&) {
    if (now() != long_read) {
      ++ended;
      throw conflict{};
    }
    EXPECT_EQ(this_attempt.ended, ended);
    EXPECT_NE(this_attempt.context->long_read, nullptr);
  }));
  EXPECT_GE(ended, 2u);
  expect_nothing_left();
}

TEST_F(attempts, at_a_snapshot) {  // B5
  const pool_snapshot s = value_of(take_snapshot(*pool_));
  for (unsigned round = 0; round < 2; ++round) {
    value_of(s.read([&] {
      EXPECT_EQ(now(), at_moment);
      EXPECT_NE(this_attempt.moment, nullptr);
      value_of(pool_->read([](const counters&) { EXPECT_EQ(now(), at_moment); }));
    }));
    expect_nothing_left();
  }
}

TEST_F(attempts, are_joined) {
  value_of(pool_->update([&](counters&) {
    value_of(pool_->read([](const counters&) { EXPECT_EQ(now(), first); }));
    value_of(pool_->update([](counters& r) { r.b += 1; }));
    EXPECT_EQ(begin(true), begin_status::joined);
    EXPECT_EQ(now(), first);
  }));
  expect_nothing_left();
}

TEST_F(attempts, that_are_the_last) {
  for (const bool commits : {true, false}) {
    ASSERT_EQ(begin(true), begin_status::started);
    detail::set_last_attempt();
    EXPECT_EQ(now(), last);
    EXPECT_TRUE(detail::this_access.running->reclaim_tried);
    if (commits)
      EXPECT_EQ(detail::commit_transaction(), commit_status::committed);
    else
      detail::roll_back_transaction();
    expect_nothing_left();
  }
}

TEST_F(attempts, lose_a_commit) {  // E3
  transaction t = value_of(pool_->begin());
  pool_->root(t).b = pool_->root(t).a.load();
  elsewhere([this] { value_of(pool_->update([](counters& r) { r.a += 1; })); });
  EXPECT_FALSE(t.commit().has_value());
  EXPECT_EQ(now(), lost);
  EXPECT_EQ(t.state(), transaction_state::lost);
  EXPECT_EQ(this_attempt.held, &t);
  value_of(t.retry());
  EXPECT_EQ(now(), repeated);
  EXPECT_EQ(t.state(), transaction_state::open);
  value_of(t.commit());
  expect_nothing_left();
}

TEST_F(attempts, lose_at_a_load) {  // E4
  transaction t = value_of(pool_->begin());
  pool_->root(t).b = pool_->root(t).a.load();
  elsewhere([this] { value_of(pool_->update([](counters& r) { r.a += 1, r.unused[8] = 1; })); });
  EXPECT_THROW((void)pool_->root(t).unused[8].load(), conflict);
  EXPECT_EQ(now(), lost);
  EXPECT_EQ(t.state(), transaction_state::lost);
  t.roll_back();
  expect_nothing_left();
}

TEST_F(attempts, are_rolled_back_from_each_state) {  // E5
  lose_until(true, [] { return now() == first; });
  expect_nothing_left();
  lose_until(true, [] { return now() == repeated; });
  expect_nothing_left();
  lose_until(true, [] { return this_attempt.context->runs_alone; });
  expect_nothing_left();
  lose_until(false, [] { return now() == long_read; });
  expect_nothing_left();
  lose_until(true, [] {
    try {
      detail::lose_attempt();
    } catch (const conflict&) {
    }
    return now() == lost;
  });
  expect_nothing_left();
  {
    const pool_snapshot s = value_of(take_snapshot(*pool_));
    EXPECT_THROW((void)s.read([] { throw std::out_of_range("in a snapshot"); }), std::out_of_range);
    expect_nothing_left();
  }
}

// As an allocation does that finds no room, and a store that finds none in the log.
TEST_F(attempts, that_found_no_room_leave_nothing_to_the_next_transaction) {
  transaction t = value_of(pool_->begin());
  detail::this_access.running->wants_reclaim = true;
  detail::this_access.running->exceeds_log = true;
  EXPECT_THROW(detail::lose_attempt(), conflict);
  EXPECT_EQ(t.state(), transaction_state::lost);
  t.roll_back();
  expect_nothing_left();
}

TEST_F(attempts, between_end_when_the_pool_is_poisoned) {  // E8
  ASSERT_EQ(begin(true), begin_status::started);
  detail::retry_transaction();
  EXPECT_EQ(now(), between);
  core().state().poison(detail::pool_state::poison_cause::write_failed);
  EXPECT_EQ(begin(true), begin_status::refused);
  EXPECT_EQ(detail::last_error().code, errc::poisoned);
  EXPECT_EQ(now(), none);
  EXPECT_EQ(this_attempt.ended, 0u);
  EXPECT_FALSE(this_attempt.context->in_transaction.made());
}

}  // namespace
}  // namespace stele::testing
