// The attempt of this thread: whose transaction it runs, and in which state, which says what its
// end gives back. A transaction takes attempts until one commits or fails, or until it is given up.
//
// A way to begin         from -> to
//   what it takes. Who calls it. The test.
//
// B1 begin_transaction   none -> first
//   The thread's log; an update under single_writer also the writer lock. run_transaction,
//   transaction::start, itm::block. attempts.begin_and_end_with_nothing_left
// B2 begin_read_at_once  none -> first
//   The log, if no thread has to be waited for. hold_read_at_once.
//   attempts.begin_at_once_or_not_at_all
// B3 begin_transaction   none -> first -> foreign_moment
//   Of a read that cannot run again, of a pool that another process has open: the log, and a moment
//   that is kept there. transaction::start. attempts.at_a_foreign_moment
// B4 begin_transaction   between -> repeated, long_read or foreign_moment
//   Nothing; a long read, for the log; a moment that is kept elsewhere. As B1.
//   attempts.repeat_after_a_conflict, attempts.go_on_as_a_long_read,
//   readers_of_default.see_one_moment_in_a_long_read_beside_a_flat_out_writer
// B5 begin_at_moment     none -> first -> at_moment
//   The mutex of a pool_snapshot, and no log. pool_snapshot::read. attempts.at_a_snapshot
//
// While an attempt runs, begin_transaction of the same pool changes nothing (attempts.are_joined).
// set_last_attempt       first -> last
//   Nothing. itm::block, when it cannot be rolled back. attempts.that_are_the_last
//
// An ending              from -> to
//   what it gives back. Who calls it. The test.
//
// E1 commit_transaction  first -> none
//   The log and the writer lock. Who began it. attempts.begin_and_end_with_nothing_left
// E2 commit_transaction  any other that runs -> none
//   Also the right to run alone, the long read, the moment, the snapshot's mutex. Who began it.
//   attempts.repeat_after_a_conflict, attempts.go_on_as_a_long_read, attempts.at_a_snapshot
// E3 commit_transaction  any that runs -> lost
//   Nothing: a value that was read is not current. Who began it. attempts.lose_a_commit
// E4 lose_attempt        any that runs -> lost
//   Nothing, and throws conflict. Loads, stores, allocations. attempts.lose_at_a_load
// E5 roll_back_transaction  any that runs -> none
//   As E2. Who began it; of a held transaction also the end of its thread.
//   attempts.are_rolled_back_from_each_state, held_transaction.is_rolled_back_when_its_thread_ends
// E6 retry_transaction   any that runs, but at_moment -> between
//   What the attempt has locked, stored and allocated. Who began it.
//   attempts.repeat_after_a_conflict
// E7 a begin that throws  any that runs -> none
//   As E2. B1 to B5. failing_memory_of_holders.leaves_all_of_a_transaction_or_nothing
// E8 a begin that is refused  between, or first of B3 -> none
//   As E2, of a pool of another process its session gives it back. B3, B4.
//   attempts.between_end_when_the_pool_is_poisoned,
//   readers_of_default.that_cannot_run_again_are_refused_beside_a_transaction_that_waits
// E9 leave_transaction_to_parent  the state stays
//   Nothing. A child of fork, in which each load and store is refused until E5.
//   held_transactions.of_a_parent_are_only_rolled_back_in_its_child
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

// The transitions that the head of this file lists.
constexpr bool may_follow(attempt_state from, attempt_state to) noexcept {
  using enum attempt_state;
  switch (to) {
    case none:
      return from != none;
    case first:
      return from == none;
    case at_moment:
      return from == first;
    case repeated:
    case long_read:
      return from == between;
    case foreign_moment:
      return from == between || from == first;  // B3 comes after B1
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

  // B1 to B3, and the beginning of B5.
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
