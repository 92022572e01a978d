// transaction: a transaction that the caller holds, for code that cannot hand its work over as a
// function: front ends of other languages and protocols, and work that several calls share. Where
// it can, pool::update() is shorter, and runs again by itself. Guide: docs/guide/transactions.md.
//
//   auto add = [&](std::uint64_t n) -> stele::result<> {
//     auto t = pool.begin();
//     if (!t) return std::unexpected(t.error());
//     for (;;) {
//       try {
//         pool.root(*t).n += n;
//         auto done = t->commit();
//         if (done || t->state() != stele::transaction_state::lost) return done;
//       } catch (const stele::conflict&) {
//       } catch (const stele::failure& f) {
//         if (f.why().code != stele::errc::full) return std::unexpected(f.why());
//       }
//       if (auto again = t->retry(); !again) return again;  // all of it once more
//     }
//   };
//   if (auto added = add(7); !added) std::fprintf(stderr, "%s\n", added.error().message.c_str());
//
// Between begin() and commit() the thread loads and stores as in the body of an update. update(),
// read() and the calls of kv on the same pool become part of the transaction; they then throw
// conflict and failure as loads and stores do. begin() is refused there (errc::nested).
//
//   state  what it is                                            what may be called
//   none   made by the default constructor, or moved from        assignment
//   open   runs                                                  everything
//   lost   its attempt cannot commit: a load, a store or a       retry(), roll_back()
//          commit met a conflict, or the commit found no room
//   ended  committed or rolled back; nothing of it is left       assignment
//
// state(), destruction and roll_back() are allowed in each state. Another call in a wrong state
// returns errc::invalid_argument, or errc::conflict if the attempt is lost, and changes nothing.
//
// Nothing is on media before commit(). After a crash there is the whole transaction or nothing of
// it, and the whole if commit() has returned success, under the terms of its durability. One that
// is open at a crash is gone.
//
// Thread safety: a transaction belongs to the thread that began it, and a thread has one at a time.
// A call in another thread, a move of an open one too, ends the program. When its thread ends, an
// open transaction is rolled back. The pool outlives it: close() returns in_use while it is open.
// In a child of fork it can only be rolled back: loads, stores and commit() are refused.
#pragma once

#include <stele/detail/access.h>
#include <stele/durability.h>
#include <stele/error.h>

#include <cstdint>
#include <utility>

namespace stele {

template <class Root>
class pool;

// What the holder does between begin and commit.
enum class code_between : std::uint8_t {
  // It waits for no thread, as the body of an update. Such a transaction may be faster, and one
  // that has lost often runs alone, so that it wins.
  computes_only,
  // It may wait for other threads, for example for a lock of the program; but not for one that
  // waits for this transaction: that loads or stores a line (64 bytes) which this one has stored
  // to; that backs up, grows or checks the pool, or takes a snapshot of it; and under
  // single_writer that updates it. The default of begin().
  may_wait,
};

// Thrown by loads, stores and allocations in a transaction that has met another one. It is no
// std::exception, so that handlers of errors let it pass. pool::update catches it and runs its body
// again; the holder of a transaction calls retry().
struct conflict {};

enum class transaction_state : std::uint8_t { none, open, lost, ended };

// Whether a transaction of any pool runs in the calling thread.
[[nodiscard]] inline bool in_transaction() noexcept {
  return detail::this_access.size != 0;
}

class transaction;

namespace detail {

class runtime;
using stele::code_between;
[[noreturn]] void lose_attempt();  // throws conflict; the running attempt can only be rolled back
void end_held_transaction() noexcept;  // of a thread that ends

// For front ends that know a pool by its runtime: pool::begin() and pool::begin_read().
[[nodiscard]] result<stele::transaction> hold_update(runtime& r, durability d,
                                                     code_between between);
[[nodiscard]] result<stele::transaction> hold_read(runtime& r, code_between between);
// Begins a read that only computes, unless that has to wait for another thread, or is refused: then
// the state is none.
[[nodiscard]] stele::transaction hold_read_at_once(runtime& r);
// After a transaction that has ended for want of room: the pool grows, if it may.
void make_room(runtime& r) noexcept;

}  // namespace detail

class transaction {
 public:
  transaction() noexcept = default;
  transaction(transaction&& other) noexcept { take(other); }
  transaction& operator=(transaction&& other) noexcept {
    if (this != &other) roll_back(), take(other);
    return *this;
  }
  ~transaction() { roll_back(); }

  [[nodiscard]] transaction_state state() const noexcept;

  // Commits. On success the transaction has ended, and its change is durable, or ordered, as
  // begin() was told. Errors: conflict and full, the transaction is then lost; else it has ended
  // and nothing has changed: io, poisoned, read_only. After `poisoned` the commit may be kept, as
  // the message says. Throws what a destructor of a container has thrown, and std::bad_alloc; the
  // transaction is then rolled back.
  [[nodiscard]] result<> commit();
  // Nothing of the transaction is left. Does nothing unless it is open or lost.
  void roll_back() noexcept;
  // Rolls back and begins again, of an open or a lost transaction. The caller then does all of it
  // once more: what it has loaded counts no longer. After a conflict it waits first, longer each
  // time, so that losers do not meet again; of two that have met, one can commit. After a failure
  // for want of room it gathers free memory, or the pool grows (pool_options::max_size). On success
  // the transaction is open, on an error it has ended. Errors: full, if there is no more room;
  // those of begin(); nested, if another one has begun since it lost a commit for want of room: it
  // stays lost. Throws std::bad_alloc; it has then ended.
  [[nodiscard]] result<> retry();

  // Bytes of blocks that it has allocated so far, less those that it has freed. 0 unless it is
  // open. For a front end that counts what its pool holds: it walks no heap.
  [[nodiscard]] std::int64_t bytes_allocated() const noexcept;

 private:
  template <class Root>
  friend class pool;
  friend void detail::end_held_transaction() noexcept;
  friend result<transaction> detail::hold_update(detail::runtime& r, durability d,
                                                 code_between between);
  friend result<transaction> detail::hold_read(detail::runtime& r, code_between between);
  friend transaction detail::hold_read_at_once(detail::runtime& r);

  [[nodiscard]] static result<transaction> begin(transaction t);
  [[nodiscard]] result<> start();
  [[nodiscard]] result<> refuse(const char* what) const;
  void take(transaction& other) noexcept;
  void hold() noexcept;
  void let_go() noexcept;
  // Throws failure(errc::invalid_argument) unless it is open on `r`.
  void require_open_on(const detail::runtime& r) const;

  detail::runtime* pool_ = nullptr;
  transaction_state state_ = transaction_state::none;  // open: perhaps lost
  bool writes_ = false;
  durability durability_ = durability::durable;
  code_between between_ = code_between::may_wait;
};

}  // namespace stele
