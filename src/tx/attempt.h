// The attempt of this thread: whose transaction it runs, and in which state, which says what its
// end gives back. A transaction takes attempts until one commits or fails, or until it is given up.
#pragma once

#include <base/assert.h>
#include <stele/pool.h>

#include <chrono>
#include <cstdint>

namespace stele::detail {

class long_read;
class runtime;
struct thread_context;

enum class attempt_state : std::uint8_t {
  none,            // the thread is in no transaction
  first,           // the first attempt: it holds its log, and the writer lock, and nothing else
  repeated,        // a later one, which may run alone
  long_read,       // a later one of a read, as of a moment that this process keeps
  foreign_moment,  // of a read of a pool that another process has open, as of a moment kept there
  at_moment,       // of a read of a pool_snapshot
  last,            // of an update that cannot run again: for want of room it fails
  lost,            // can only be rolled back; holds what it held before
  between,         // rolled back; holds likewise, until the next attempt begins
};

constexpr bool runs(attempt_state s) noexcept {
  return s != attempt_state::none && s != attempt_state::between;
}

// The transitions that there are.
constexpr bool may_follow(attempt_state from, attempt_state to) noexcept {
  using enum attempt_state;
  switch (to) {
    case none:
      return from != none;
    case first:
    case at_moment:
      return from == none;
    case repeated:
    case long_read:
      return from == between;
    case foreign_moment:
      return from == between || from == first;  // at its begin
    case last:
      return from == first;
    case lost:
      return runs(from);  // again, if the body has gone on after a conflict
    case between:
      return runs(from) && from != at_moment;
  }
  return false;
}

// What this thread's last transaction found no room for, and the pool's size then.
struct wanted_room {
  std::uint64_t bytes = 0;  // 0: nothing
  std::uint64_t pool_size = 0;
};

class attempt {
 public:
  attempt_state state() const noexcept { return pool == nullptr ? attempt_state::none : state_; }
  // Of an attempt that runs.
  bool is_first() const noexcept { return state_ == attempt_state::first; }

  void begin(runtime& r, thread_context& v) noexcept {
    STELE_ASSERT(pool == nullptr && is_first() && ended == 0 && moment == nullptr);
    context = &v, pool = &r;
  }
  void become(attempt_state to) noexcept {
    STELE_ASSERT(to != attempt_state::none && to != attempt_state::first);
    STELE_ASSERT(may_follow(state(), to));
    state_ = to;
  }
  void end_first() noexcept {
    STELE_ASSERT(state() == attempt_state::first && ended == 0 && moment == nullptr);
    pool = nullptr;
  }
  // From any state but none.
  void end() noexcept {
    STELE_ASSERT(may_follow(state(), attempt_state::none));
    state_ = attempt_state::first;
    ended = 0;
    moment = nullptr;
    pool = nullptr;
  }

  // A begin stores `pool` and `context`, which are apart: GCC would combine stores of neighbours in
  // a vector register.
  runtime* pool = nullptr;  // null: the thread is in no transaction
  // The open transaction that the thread holds, wherever its object has been moved; null: none.
  stele::transaction* held = nullptr;
  thread_context* context = nullptr;    // of the last one, if it is in none
  detail::long_read* moment = nullptr;  // of the pool_snapshot that it reads
  unsigned ended = 0;  // attempts that came before this one, of the same transaction
  std::chrono::steady_clock::time_point first_retry;  // if any has ended
  wanted_room wanted;

 private:
  // `first` while there is none: a begin and an end of a first attempt store nothing here.
  attempt_state state_ = attempt_state::first;
};

extern constinit thread_local attempt this_attempt;

// Saves the error for last_error(); returns commit_status::failed.
commit_status fail_attempt(error why);
// For want of room the running attempt of an update fails at once.
void set_last_attempt() noexcept;

}  // namespace stele::detail
