// A transaction that its caller holds. It takes the steps that run_transaction takes around a body:
// begin, commit, roll back, retry.
//
// Invariant: this_attempt.held is the open transaction of this thread, wherever its object has been
// moved; null if it has none, though an update may be running.
#include <base/assert.h>
#include <base/check.h>
#include <stele/transaction.h>
#include <tx/attempt.h>
#include <tx/runtime.h>

#include <utility>

namespace stele {

namespace {

using state = transaction_state;
using detail::attempt_state;
using detail::this_attempt;

// Does not throw std::bad_alloc, which would tell the caller that the transaction has ended.
error conflict_error(const detail::runtime& r) noexcept {
  try {
    return {errc::conflict,
            r.state().file.path() +
                ": another transaction has changed what this one has read, or holds what it "
                "changes; call retry() and do all of it again, or roll_back()"};
  } catch (const std::bad_alloc&) {
    return {errc::conflict, "conflict"};  // short: std::string does not allocate
  }
}

}  // namespace

namespace detail {

void end_held_transaction() noexcept {
  if (this_attempt.held != nullptr) this_attempt.held->roll_back();
}

result<stele::transaction> hold_update(runtime& r, durability d, code_between between) {
  stele::transaction t;
  t.pool_ = &r, t.writes_ = true, t.durability_ = d, t.between_ = between;
  return stele::transaction::begin(std::move(t));
}

result<stele::transaction> hold_read(runtime& r, code_between between) {
  stele::transaction t;
  t.pool_ = &r, t.between_ = between;
  return stele::transaction::begin(std::move(t));
}

stele::transaction hold_read_at_once(runtime& r) {
  stele::transaction t;
  if (!begin_read_at_once(r)) return t;
  t.pool_ = &r, t.between_ = code_between::computes_only;
  t.hold();
  return t;
}

}  // namespace detail

result<transaction> transaction::begin(transaction t) {
  if (in_transaction())
    return std::unexpected(
        error{errc::nested, t.pool_->state().file.path() +
                                ": a transaction runs in this thread; end it before the next one "
                                "begins. update() and read() become part of one of the same pool"});
  if (auto begun = t.start(); !begun) return std::unexpected(std::move(begun.error()));
  return t;
}

// The first attempt, or after retry_transaction the next one. If it throws, the thread is in no
// transaction.
result<> transaction::start() {
  STELE_ASSERT(!in_transaction() && this_attempt.held == nullptr && pool_ != nullptr);
  state_ = state::ended;
  this_attempt.wanted = {};
  const auto how = detail::begin_transaction(*pool_, writes_, durability_, between_);
  if (how == detail::begin_status::refused) return std::unexpected(detail::last_error());
  STELE_ASSERT(how == detail::begin_status::started);
  hold();
  return {};
}

void transaction::hold() noexcept {
  STELE_ASSERT(this_attempt.held == nullptr && in_transaction());
  STELE_ASSERT(detail::runs(this_attempt.state()) && this_attempt.pool == pool_);
  this_attempt.held = this;
  state_ = state::open;
}

// Whatever comes next, the thread does not hold it.
void transaction::let_go() noexcept {
  base::check(this_attempt.held == this,
              "a transaction is ended in the thread that began it, and before that thread ends");
  this_attempt.held = nullptr;
  state_ = state::ended;
}

void transaction::take(transaction& other) noexcept {
  STELE_ASSERT(state_ != state::open);
  pool_ = other.pool_;
  writes_ = other.writes_;
  durability_ = other.durability_;
  between_ = other.between_;
  state_ = std::exchange(other.state_, state::none);
  if (state_ != state::open) return;
  base::check(this_attempt.held == &other,
              "an open transaction is moved by the thread that began it");
  this_attempt.held = this;
}

transaction_state transaction::state() const noexcept {
  const bool is_lost = this_attempt.state() == attempt_state::lost;
  return state_ == state::open && is_lost ? state::lost : state_;
}

result<> transaction::refuse(const char* what) const {
  return std::unexpected(
      error{errc::invalid_argument, std::string("a transaction that has ") +
                                        (state_ == state::none ? "not begun" : "ended") +
                                        " cannot be " + what + "; begin another one"});
}

result<> transaction::commit() {
  if (state() == state::lost) return std::unexpected(conflict_error(*pool_));
  if (state_ != state::open) return refuse("committed");
  let_go();
  try {
    switch (detail::commit_transaction()) {
      case detail::commit_status::committed:
        return {};
      case detail::commit_status::failed: {
        error why = detail::last_error();
        if (why.code == errc::full) state_ = state::lost;
        return std::unexpected(std::move(why));
      }
      case detail::commit_status::retry:
        break;
    }
  } catch (const conflict&) {
  } catch (const failure& f) {
    detail::roll_back_transaction();
    if (f.why().code == errc::full) state_ = state::lost;
    return std::unexpected(f.why());
  } catch (...) {
    detail::roll_back_transaction();
    throw;
  }
  this_attempt.become(attempt_state::lost);  // from a conflict{} that its code has thrown, too
  hold();
  return std::unexpected(conflict_error(*pool_));
}

void transaction::roll_back() noexcept {
  if (state_ == state::open) {
    let_go();
    detail::roll_back_transaction();
  } else if (state_ == state::lost) {
    state_ = state::ended;
  }
}

result<> transaction::retry() {
  if (state_ == state::open) {
    let_go();
    if (this_attempt.wanted.bytes == 0) {
      detail::retry_transaction(between_);
      return start();
    }
    detail::roll_back_transaction();
  } else if (state_ != state::lost) {
    return refuse("run again");
  } else if (in_transaction()) {
    return std::unexpected(error{
        errc::nested, "a transaction runs in this thread; end it before this one is retried"});
  }
  state_ = state::ended;
  error why{errc::full, pool_->state().file.path() + " has no room for this transaction"};
  if (!detail::grow_for(*pool_, why)) return std::unexpected(std::move(why));
  return start();
}

std::int64_t transaction::bytes_allocated() const noexcept {
  return this_attempt.held == this && state() == state::open
             ? detail::bytes_allocated_by_transaction()
             : 0;
}

void transaction::require_open_on(const detail::runtime& r) const {
  if (this_attempt.held == this && pool_ == &r && state() == state::open) return;
  throw failure({errc::invalid_argument,
                 r.state().file.path() + ": the root is asked for with a transaction that is not "
                                         "open, or is one of another pool or thread"});
}

}  // namespace stele
