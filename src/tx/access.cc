// The slow paths of field<T>, allocation, and the steps of a transaction that pool.h drives: begin,
// commit, roll back, retry.
#include <base/assert.h>
#include <base/check.h>
#include <base/flatten.h>
#include <base/rng.h>
#include <stele/snapshot.h>
#include <tx/attempt.h>
#include <tx/long_read.h>
#include <tx/readers/reader_session.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace stele::detail {

runtime* runtime_at(std::uintptr_t address);
constinit thread_local attempt this_attempt;

namespace {

// Why this thread's last attempt failed. Apart from this_attempt, which is used without the guard
// of an object that has a destructor.
thread_local error last_attempt_error{};

bool in_transaction(std::uintptr_t address, std::size_t size) noexcept {
  const access& a = this_access;
  return address - a.pool_base < a.size && a.size - (address - a.pool_base) >= size;
}

// Splits a range at line boundaries. Calls part(address, bytes before it, bytes) for each part.
template <class Part>
void for_each_part(std::uintptr_t address, std::size_t size, Part&& part) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t here = std::min<std::size_t>(line_size - at % line_size, size - done);
    part(at, done, here);
    done += here;
  }
}

// Stores a range of the running transaction's pool; from: null for zeroes.
[[gnu::always_inline]] inline void store_to_pool(std::uintptr_t address, const std::byte* from,
                                                 std::size_t size) {
  STELE_ASSERT(in_transaction(address, size) && this_access.running != nullptr);
  transaction& tx = *this_access.running;
  const std::uint64_t offset = address - this_access.pool_base;
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t at = offset + done;
    const std::byte* const bytes = from != nullptr ? from + done : nullptr;
    const std::size_t left = size - done, whole = left / line_size * line_size;
    if (at % line_size == 0 && whole != 0) {
      tx.store_lines(at, bytes, whole);
      done += whole;
    } else {
      const std::size_t here = std::min<std::size_t>(line_size - at % line_size, left);
      tx.store_part(at, bytes, here);
      done += here;
    }
  }
}

// A store outside the running transaction's pool must be to volatile memory. Ends the program if it
// is to an open pool. Throws if it begins in the running transaction's pool and ends after it.
void check_volatile(std::uintptr_t address) {
  if (in_transaction(address, 1))
    throw failure({errc::corrupt,
                   "a store reaches past the end of its pool: a length in its content is damaged"});
  base::check(runtime_at(address) == nullptr, this_access.size == 0
                                                  ? "a store to a pool outside a transaction would "
                                                    "be torn by a crash; put it inside pool::update"
                                                  : "a store to a pool inside a transaction on "
                                                    "another pool; a transaction changes one pool");
}

// Not inline: it would make store_whole_word save registers.
[[gnu::noinline]] void store_volatile(std::uintptr_t address, std::uint64_t bits, unsigned size) {
  check_volatile(address);
  std::memcpy(reinterpret_cast<void*>(address), &bits, size);
}

void end_long_read(thread_context& v) noexcept {
  runtime& r = *this_attempt.pool;
  STELE_ASSERT(v.long_read != nullptr && v.tx == &v.long_read->reader());
  r.leave(v);
  this_attempt.end();
  this_access.running = nullptr;  // a later transaction may have its address
  r.end_long_read(v);
}

void leave_moment(thread_context& v) noexcept {
  long_read& m = *this_attempt.moment;
  STELE_ASSERT(v.tx == &m.reader() && this_attempt.ended == 0);
  m.give_back(v.tx);
  this_attempt.end();
  this_access.running = nullptr;
  m.in_use().unlock();
}

// What every attempt in a log of its thread holds.
[[gnu::always_inline]] inline void leave_log(thread_context& v) noexcept {
  runtime& r = *this_attempt.pool;
  STELE_ASSERT(v.long_read == nullptr && !v.runs_alone && v.foreign_moment == nullptr);
  if (v.holds_writer) r.unlock_writer(v);
  r.consider_bias(v);
  r.leave(v);
}

// From any state but none and first.
[[gnu::noinline]] void end_later_attempt() noexcept {
  thread_context& v = *this_attempt.context;
  runtime& r = *this_attempt.pool;
  STELE_ASSERT(!this_attempt.is_first());
  v.tx->wants_reclaim = false;
  v.tx->reclaim_tried = false;
  v.tx->exceeds_log = false;
  if (r.is_of_parent()) return this_attempt.end();
  if (v.runs_alone) r.end_running_alone(v);
  if (v.foreign_moment != nullptr) r.reading()->end_moment(v);
  if (v.long_read != nullptr) return end_long_read(v);
  if (this_attempt.moment != nullptr) return leave_moment(v);
  leave_log(v);
  this_attempt.end();
}

// Of a transaction that did not begin as a read.
void end_update() noexcept {
  STELE_ASSERT(this_attempt.state() != attempt_state::none && this_access.size == 0);
  if (!this_attempt.is_first()) [[unlikely]]
    return end_later_attempt();
  leave_log(*this_attempt.context);
  this_attempt.end_first();
}

void leave_readers(thread_context& v) noexcept {
  if (v.reading.load(std::memory_order_relaxed)) v.reading.store(false, std::memory_order_release);
}

void end_transaction() noexcept {
  leave_readers(*this_attempt.context);
  end_update();
}

// Short transactions that conflict often need no more than to wait for each other: to run alone
// costs the others their logs.
bool needs_to_run_alone() noexcept {
  if (base::schedule_explorer_build) return this_attempt.ended >= 3;
  return this_attempt.ended >= 16 && std::chrono::steady_clock::now() - this_attempt.first_retry >=
                                         std::chrono::milliseconds(5);
}

// Waits for a random time that grows with the lost attempts, so that two losers do not conflict
// again. A transaction that has lost often waits for a commit that waits for its device; it yields
// or sleeps, since that commit needs the processor more.
void back_off(unsigned attempts) {
  static thread_local base::rng random(reinterpret_cast<std::uintptr_t>(&this_access));
  if (attempts < 4) return;
  const std::uint64_t wait = random.below(std::uint64_t{1} << std::min(attempts, 12u));
  if (attempts > 12)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  else if (attempts > 8)
    std::this_thread::yield();
  else
    for (std::uint64_t i = 0; i < wait; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

std::uint64_t load_word(std::uintptr_t address) {
  STELE_ASSERT(in_transaction(address, 8) && address % 8 == 0);
  return this_access.running->load_word(address - this_access.pool_base);
}

void store_word(std::uintptr_t address, std::uint64_t bits, unsigned size) {
  if (!in_transaction(address, size)) [[unlikely]]
    return store_volatile(address, bits, size);
  const unsigned shift = address & 7;
  this_access.running->store_bits((address & ~std::uintptr_t{7}) - this_access.pool_base,
                                  bits << (8 * shift),
                                  static_cast<std::uint8_t>(((1u << size) - 1) << shift));
}

STELE_FLATTEN void store_whole_word(std::uintptr_t address, std::uint64_t bits) {
  const access& a = this_access;
  if (address - a.pool_base < a.size) [[likely]]  // a pool's size is a multiple of 8
    return a.running->store_word(address - a.pool_base, bits);
  store_volatile(address, bits, 8);
}

void grow_undo_buffer() {
  STELE_ASSERT(this_access.in_place_size != 0);
  this_access.running->grow_undo_buffer();
}

void prefetch_lock(std::uintptr_t address) noexcept {
  this_access.running->prefetch_lock(address - this_access.pool_base);
}

void throw_bad_pointer() {
  throw failure({errc::corrupt,
                 "the content is damaged: a link or a length leads out of the heap; check the "
                 "pool, or restore it from a copy"});
}

void load_routed_range(std::uintptr_t address, void* to, std::size_t size) {
  const access& a = this_access;
  STELE_ASSERT(address - a.pool_base < a.load_size && a.load_size <= a.size);
  if (a.load_size - (address - a.pool_base) < size)
    throw failure({errc::corrupt,
                   "a load reaches past the end of its pool: a length in its content is damaged"});
  if (a.filter == 0) {  // nothing here is routed
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return;
  }
  if (a.running->try_fast_read(address - a.pool_base, static_cast<std::byte*>(to), size)) [[likely]]
    return;
  for_each_part(address, size, [&](std::uintptr_t at, std::size_t done, std::size_t part) {
    auto* const target = static_cast<std::byte*>(to) + done;
    if ((a.filter & filter_bit(at)) == 0)
      std::memcpy(target, reinterpret_cast<const void*>(at), part);
    else
      a.running->load_part(at - a.pool_base, target, part);
  });
}

void store_range(void* to, const void* from, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (!in_transaction(address, size)) [[unlikely]] {
    check_volatile(address);
    std::memcpy(to, from, size);
    return;
  }
  store_to_pool(address, static_cast<const std::byte*>(from), size);
}

void fill_zero(void* to, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (!in_transaction(address, size)) [[unlikely]] {
    check_volatile(address);
    base::check(false, "make<T>() outside a transaction; put it inside pool::update");
  }
  store_to_pool(address, nullptr, size);
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (this_access.size == 0)
    throw failure(
        {errc::invalid_argument, "make<T>() outside a transaction; put it inside pool::update"});
  return reinterpret_cast<void*>(this_access.pool_base +
                                 this_access.running->allocate(size, alignment));
}

void deallocate(void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (!in_transaction(address, 1))
    throw failure({errc::invalid_argument,
                   "freeing something that is not in the pool of the running transaction"});
  this_access.running->deallocate(address - this_access.pool_base);
}

// Whether a block in use contains this address of the running transaction's pool; whether one of at
// least `size` bytes begins there. Reads that see an earlier moment, or a pool of another process,
// are not judged: the states are of today.
static bool judges_blocks() noexcept {
  const attempt& now = this_attempt;
  return now.pool->reading() == nullptr && now.moment == nullptr &&
         now.context->long_read == nullptr && now.context->foreign_moment == nullptr;
}
bool is_in_used_block(std::uintptr_t address) {
  return !judges_blocks() || this_access.running->is_in_used_block(address - this_access.pool_base);
}
bool is_used_block(std::uintptr_t address, std::size_t size) {
  return !judges_blocks() ||
         this_access.running->is_used_block(address - this_access.pool_base, size);
}

namespace {

begin_status refused(error why) {
  (void)fail_attempt(std::move(why));
  return begin_status::refused;
}

// begin() may throw std::bad_alloc, when the mechanism has work to do first. Then the thread is in
// no transaction.
inline void begin_or_roll_back(runtime& r, thread_context& v, bool writes, durability d) try {
  STELE_ASSERT(runs(this_attempt.state()) && v.tx != nullptr);
  STELE_ASSERT(this_attempt.pool == &r && this_attempt.context == &v);
  v.tx->begin(v, writes, d == durability::ordered, r.is_alone(v));
} catch (...) {
  v.tx->rollback();
  end_transaction();
  throw;
}

// Of a pool that is open for reading. After an error or an exception the thread is in no
// transaction; its next one must not count as a part of this one.
template <class Prepare>
auto or_leave(Prepare&& prepare) {
  const auto leave = [] {
    this_attempt.end();
    this_access.running = nullptr;
  };
  try {
    auto ready = prepare();
    if (!ready) leave();
    return ready;
  } catch (...) {
    leave();
    throw;
  }
}

// B4, when the next attempt has all that it holds.
void begin_later_attempt(const thread_context& v) noexcept {
  if (v.long_read != nullptr)
    this_attempt.become(attempt_state::long_read);
  else if (v.foreign_moment != nullptr)
    this_attempt.become(attempt_state::foreign_moment);
  else
    this_attempt.become(attempt_state::repeated);
}

// begin_transaction while a transaction of this thread runs, or is between two attempts.
[[gnu::noinline]] begin_status begin_nested(runtime& r, bool writes, durability d,
                                            code_between code) {
  if (this_attempt.pool != &r)
    return refused(
        {errc::nested, "a transaction on another pool is running in this thread; end it first"});
  if (this_attempt.state() != attempt_state::between) return begin_status::joined;
  STELE_ASSERT(this_access.size == 0);
  thread_context& v = *this_attempt.context;
  if (r.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]] {
    end_transaction();
    return refused(r.unusable().error());
  }
  if (r.reading() != nullptr)
    if (auto ready = or_leave([&] { return r.reading()->before_retry(r, v); }); !ready)
      return refused(std::move(ready.error()));
  if (!writes && code == code_between::computes_only && r.needs_long_read(v)) r.begin_long_read(v);
  begin_later_attempt(v);
  begin_or_roll_back(r, v, writes, d);
  return begin_status::started;
}

[[gnu::noinline]] thread_context* enter_slow(runtime& r, code_between code) {
  auto entered = code == code_between::may_wait ? r.enter_without_bias() : r.enter_slow();
  if (entered) return *entered;
  (void)fail_attempt(std::move(entered.error()));
  return nullptr;
}

}  // namespace

commit_status fail_attempt(error why) {
  if (why.code == errc::full && this_attempt.pool != nullptr)
    this_attempt.wanted = {1, this_attempt.pool->state().file.header().size};
  last_attempt_error = std::move(why);
  return commit_status::failed;
}
error last_error() {
  return std::move(last_attempt_error);
}

namespace {

// Of a read that cannot run again, in a pool that another process may have open for writing. Null:
// refused.
[[gnu::noinline]] thread_context* fix_moment(runtime& r, thread_context& v) {
  auto fixed = or_leave([&] { return r.reading()->fix_moment(r, v); });
  if (fixed) {
    STELE_ASSERT(*fixed == &v);  // this thread's, however often it begins
    if (v.foreign_moment != nullptr) this_attempt.become(attempt_state::foreign_moment);
    return &v;
  }
  (void)refused(std::move(fixed.error()));
  return nullptr;
}

// begin_transaction without its shortcut. v: the thread has entered; null: it has not.
[[gnu::noinline]] STELE_FLATTEN begin_status begin_at_length(runtime& r, thread_context* v,
                                                             bool writes, durability d,
                                                             code_between code) {
  STELE_ASSERT(this_attempt.state() == attempt_state::none);
  if (writes && r.reading() != nullptr) [[unlikely]]
    return refused({errc::read_only, r.state().file.path() +
                                         " is open for reading only: only the process that has it "
                                         "open for writing changes it"});
  if (writes && r.place() != storage::file_place::in_place) [[unlikely]]
    return refused(r.place_error());
  if (v == nullptr) v = r.enter();
  if (v == nullptr || (code == code_between::may_wait && r.is_alone(*v))) [[unlikely]]
    if (v = enter_slow(r, code); v == nullptr) return begin_status::refused;
  this_attempt.begin(r, *v);
  if (writes) {
    r.lock_writer(*v);
    r.flush_deferred_of_others(*v, true);
  } else {
    r.flush_deferred_of_others(*v, false);
    r.begin_read(*v);
    if (code == code_between::may_wait && r.reading() != nullptr) [[unlikely]]
      if (v = fix_moment(r, *v); v == nullptr) return begin_status::refused;
  }
  begin_or_roll_back(r, *v, writes, d);
  return begin_status::started;
}

// The shortcuts call nothing, so they save no registers. They are two functions, so that neither
// costs the other.
[[gnu::noinline]] STELE_FLATTEN begin_status begin_read(runtime& r, durability d,
                                                        code_between code) {
  if (code != code_between::computes_only || !r.has_plain_reads())
    return begin_at_length(r, nullptr, false, d, code);
  thread_context* const v = r.enter();
  if (v == nullptr || !r.may_begin_at_once(*v) || !v->tx->try_begin_read(*v, r.is_alone(*v)))
    return begin_at_length(r, v, false, d, code);
  this_attempt.begin(r, *v);
  return begin_status::started;
}

[[gnu::noinline]] commit_status lose_commit() noexcept {
  this_attempt.become(attempt_state::lost);
  return commit_status::retry;
}

[[gnu::noinline]] STELE_FLATTEN commit_status commit_at_length() {
  const commit_status done = this_attempt.context->tx->commit();
  if (done == commit_status::retry) [[unlikely]]
    return lose_commit();
  end_transaction();
  return done;
}

[[gnu::noinline]] STELE_FLATTEN commit_status commit_read() {
  thread_context& v = *this_attempt.context;
  if (!this_attempt.is_first() || !v.tx->try_commit_read()) return commit_at_length();
  leave_readers(v);
  this_attempt.pool->leave(v);
  this_attempt.end_first();
  return commit_status::committed;
}

}  // namespace

void leave_transaction_to_parent() noexcept {
  if (this_attempt.pool == nullptr || this_access.size == 0) return;
  runtime& r = *this_attempt.pool;
  const bool is_in_file = r.reading() != nullptr || r.state().file.mapping().fd >= 0;
  if (is_in_file) this_access.running->leave_to_parent();
}

bool begin_read_at_once(runtime& r) {
  if (this_attempt.pool != nullptr) return false;
  thread_context* const v = r.enter();
  if (v == nullptr) return false;
  if (!r.may_begin_at_once(*v)) {
    r.leave(*v);
    return false;
  }
  this_attempt.begin(r, *v);
  if (!r.has_plain_reads() || !v->tx->try_begin_read(*v, r.is_alone(*v)))
    begin_or_roll_back(r, *v, false, durability::durable);
  return true;
}

STELE_FLATTEN begin_status begin_transaction(runtime& r, bool writes, durability d,
                                             code_between code) {
  if (this_attempt.pool != nullptr) [[unlikely]]
    return begin_nested(r, writes, d, code);
  if (!writes) return begin_read(r, d, code);
  if (d != durability::durable || code != code_between::computes_only || !r.has_plain_updates())
    return begin_at_length(r, nullptr, writes, d, code);
  thread_context* const v = r.enter();
  if (v == nullptr || !r.may_begin_at_once(*v) || !v->tx->try_begin_update(*v, r.is_alone(*v)))
    return begin_at_length(r, v, writes, d, code);
  this_attempt.begin(r, *v);
  return begin_status::started;
}

std::int64_t bytes_allocated_by_transaction() noexcept {
  STELE_ASSERT(runs(this_attempt.state()));
  const storage::heap::changes& changes = this_attempt.context->tx->allocations();
  const storage::heap& heap = this_attempt.pool->state().heap;
  std::int64_t bytes = 0;
  const auto add = [&](const auto& all, std::int64_t sign) {
    for (const auto& one : all)
      bytes += sign * static_cast<std::int64_t>(heap.range_of(one).second);
  };
  const auto add_runs = [&](const auto& all, std::int64_t sign) {
    for (const auto& one : all)  // a slab's blocks count one by one
      if (!one.slab) bytes += sign * static_cast<std::int64_t>(heap.range_of(one).second);
  };
  add(changes.allocated, 1), add(changes.freed, -1);
  add_runs(changes.runs_allocated, 1), add_runs(changes.runs_freed, -1);
  return bytes;
}

STELE_FLATTEN commit_status commit_transaction() {
  STELE_ASSERT(runs(this_attempt.state()));
  STELE_ASSERT(this_access.running == this_attempt.context->tx);
  if (this_attempt.context->tx->only_reads()) return commit_read();
  const commit_status done = this_attempt.context->tx->commit();
  if (done == commit_status::retry) [[unlikely]]
    return lose_commit();
  end_update();
  return done;
}

// Of a pool_snapshot. The thread needs no log, and no one waits for it: there is no close while
// there is a snapshot, and a pause does not change what it reads.
begin_status begin_at_moment(long_read& m) {
  if (this_attempt.pool != nullptr)
    return refused({errc::nested, "a snapshot is read inside a transaction; end that first"});
  runtime& r = m.pool();
  const auto registered = r.register_thread();
  if (!registered) return refused(registered.error());
  thread_context& v = **registered;
  m.in_use().lock();
  m.take_over(v.tx);
  this_attempt.begin(r, v);
  this_attempt.become(attempt_state::at_moment);
  this_attempt.moment = &m;
  begin_or_roll_back(r, v, false, durability::durable);
  return begin_status::started;
}

void doom_transaction() noexcept {
  if (this_access.size != 0) this_access.running->doom();
}

void roll_back_transaction() noexcept {
  STELE_ASSERT(runs(this_attempt.state()));
  this_attempt.context->tx->rollback();
  end_transaction();
}

void lose_attempt() {
  // A part of a transaction may be used without one.
  if (this_attempt.pool != nullptr) this_attempt.become(attempt_state::lost);
  throw conflict{};
}

void set_last_attempt() noexcept {
  STELE_ASSERT(runs(this_attempt.state()));
  this_attempt.context->tx->reclaim_tried = true;
  if (this_attempt.is_first()) this_attempt.become(attempt_state::last);
}

namespace {

// Reclaims the free memory of a full pool, in transactions of its own. If it finds none, the next
// allocation fails.
void reclaim(runtime& r, thread_context& v) noexcept {
  transaction& tx = *v.tx;
  STELE_ASSERT(tx.reclaim_tried && !tx.wants_reclaim && this_access.size == 0);
  if (r.state().overlays.load(std::memory_order_relaxed) != 0)
    r.release_idle_overlays(v);  // returns blocks that they freed
  r.reclaim_idle_caches(v);
  tx.exceeds_log = true;  // no execution in log: reclaim() counts on a record in an empty log
  for (std::size_t chunks = 1; chunks != 0;) {
    try {
      tx.begin(v, true, false, false);
      chunks = tx.reclaim();
      const commit_status done = tx.commit();
      if (done == commit_status::committed) continue;
      if (done == commit_status::failed) return;
    } catch (...) {
    }
    return tx.rollback();
  }
}

}  // namespace

// On return the attempt is rolled back, but the thread is still in the transaction: the caller
// begins the next attempt at once.
void retry_transaction(code_between code) noexcept {
  attempt& now = this_attempt;
  STELE_ASSERT(may_follow(now.state(), attempt_state::between) && now.moment == nullptr);
  runtime& r = *now.pool;
  thread_context& v = *now.context;
  transaction& tx = *v.tx;
  tx.rollback();
  if (r.is_of_parent()) [[unlikely]]
    return now.become(attempt_state::between);  // the next attempt is refused
  if (++now.ended == 1) now.first_retry = std::chrono::steady_clock::now();
  // The conflicting lock may belong to the overlay of an idle thread.
  if (now.ended >= 2 && r.state().overlays.load(std::memory_order_relaxed) != 0)
    r.release_idle_overlays(v);
  if (tx.wants_reclaim) {
    tx.wants_reclaim = false;
    tx.reclaim_tried = true;
    reclaim(r, v);
  } else {
    back_off(now.ended);
    // Other threads would wait for code that may wait for them.
    if (code == code_between::computes_only && needs_to_run_alone()) r.run_alone(v);
  }
  now.become(attempt_state::between);
}

}  // namespace stele::detail
