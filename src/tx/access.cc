// The slow paths of field<T>, allocation, and the steps of a transaction that pool.h drives.
#include <base/check.h>
#include <base/in_one_piece.h>
#include <base/rng.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace stele::detail {

runtime* runtime_at(std::uintptr_t address);

namespace {

// The pool whose transaction runs in this thread.
constinit thread_local runtime* this_runtime = nullptr;
constinit thread_local visitor* this_visitor = nullptr;
thread_local error this_error{};  // why its last attempt failed

bool in_transaction(std::uintptr_t address, std::size_t size) noexcept {
  const access& a = this_access;
  return address - a.home < a.size && a.size - (address - a.home) >= size;
}

// part(address, bytes before it, bytes) for the piece of a range on each line.
template <class Part>
void for_each_part(std::uintptr_t address, std::size_t size, Part&& part) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t here = std::min<std::size_t>(line_size - at % line_size, size - done);
    part(at, done, here);
    done += here;
  }
}

// A store to memory that no transaction covers: an ordinary variable's, or a mistake.
void check_ordinary(std::uintptr_t address) {
  base::check(runtime_at(address) == nullptr,
              this_access.size == 0 ? "a store to a pool outside a transaction would be torn by a crash; put it inside pool::update"
                                             : "a store to a pool inside a transaction on another pool; a transaction changes one pool");
}

void finish() noexcept {
  visitor& v = *this_visitor;
  if (v.tx->attempts != 0) [[unlikely]] {
    v.tx->attempts = 0;
    v.tx->reclaimed = false;
    v.tx->outgrown = false;
    if (v.holds_unlucky) this_runtime->unlucky().unlock();
    v.holds_unlucky = false;
  }
  if (v.reading.load(std::memory_order_relaxed)) v.reading.store(false, std::memory_order_release);
  if (v.holds_writer) this_runtime->unlock_writer(v);
  this_runtime->leave(v);
  this_runtime = nullptr;
}

// Waits a random while that grows with the attempts lost, so that two losers do not meet again. Who has lost often waits for a commit that
// waits for its device, which needs the processor more than the loser does.
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

std::uint64_t load_word(std::uintptr_t address) { return this_access.running->load_word(address - this_access.home); }

void store_word(std::uintptr_t address, std::uint64_t bits, unsigned size) {
  if (!in_transaction(address, size)) [[unlikely]] {
    check_ordinary(address);
    std::memcpy(reinterpret_cast<void*>(address), &bits, size);
    return;
  }
  const unsigned shift = address & 7;
  this_access.running->store_bits((address & ~std::uintptr_t{7}) - this_access.home, bits << (8 * shift),
                                  static_cast<std::uint8_t>(((1u << size) - 1) << shift));
}

STELE_IN_ONE_PIECE void store_whole_word(std::uintptr_t address, std::uint64_t bits) {
  const access& a = this_access;
  if (address - a.home < a.size) [[likely]]  // a pool's size is a multiple of 8
    return a.running->store_word(address - a.home, bits);
  store_word(address, bits, 8);
}

void more_kept() { this_access.running->more_kept(); }

void leads_nowhere() { throw failure({errc::corrupt, "the content is damaged: a link or a length leads out of the heap; check the pool, or restore it from a copy"}); }

void load_routed_range(std::uintptr_t address, void* to, std::size_t size) {
  const access& a = this_access;
  if (a.load_size - (address - a.home) < size) throw failure({errc::corrupt, "a load reaches past the end of its pool: a length in its content is damaged"});
  if (a.running->load_plainly(address - a.home, static_cast<std::byte*>(to), size)) [[likely]]
    return;
  for_each_part(address, size, [&](std::uintptr_t at, std::size_t done, std::size_t part) {
    auto* const target = static_cast<std::byte*>(to) + done;
    if ((a.filter & filter_bit(at)) == 0)
      std::memcpy(target, reinterpret_cast<const void*>(at), part);
    else
      a.running->load_part(at - a.home, target, part);
  });
}

void store_range(void* to, const void* from, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (!in_transaction(address, size)) [[unlikely]] {
    check_ordinary(address);
    std::memcpy(to, from, size);
    return;
  }
  for_each_part(address, size, [&](std::uintptr_t at, std::size_t done, std::size_t part) {
    this_access.running->store_part(at - this_access.home, static_cast<const std::byte*>(from) + done, part);
  });
}

void fill_zero(void* to, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  base::check(in_transaction(address, size), "make<T>() outside a transaction; put it inside pool::update");
  for_each_part(address, size, [&](std::uintptr_t at, std::size_t, std::size_t part) { this_access.running->store_part(at - this_access.home, nullptr, part); });
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (this_access.size == 0) throw failure({errc::invalid_argument, "make<T>() outside a transaction; put it inside pool::update"});
  return reinterpret_cast<void*>(this_access.home + this_access.running->allocate(size, alignment));
}

void deallocate(void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (!in_transaction(address, 1))
    throw failure({errc::invalid_argument, "destroy() of an object that is not in the pool of the running transaction"});
  this_access.running->deallocate(address - this_access.home);
}

// Where the heap of the running transaction's pool begins.
std::uint64_t heap_begin_of_running() noexcept { return this_runtime->state().file.header().chunks_offset; }

namespace {

begun refused(error why) {
  (void)fail_attempt(std::move(why));
  return begun::refused;
}

// A mechanism that has work to do first may find no memory for it: the thread is in no transaction then.
inline void begin_or_leave(visitor& v, bool writes, durability d) try {
  v.tx->begin(v, writes, d == durability::ordered);
} catch (...) {
  v.tx->rollback();
  finish();
  throw;
}

// While a transaction of this thread runs, or is between two attempts.
[[gnu::noinline]] begun begin_inside(runtime& r, bool writes, durability d) {
  if (this_runtime != &r) return refused({errc::nested, "a transaction on another pool is running in this thread; end it first"});
  if (!this_visitor->retrying) return begun::nested;
  this_visitor->retrying = false;
  if (r.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]] {
    finish();
    return refused({errc::poisoned, r.state().file.path() + " cannot be used any more: an earlier write failed, or part of the file is gone (truncated, or unreadable); reopen it"});
  }
  begin_or_leave(*this_visitor, writes, d);
  return begun::fresh;
}

[[gnu::noinline]] visitor* enter_anew(runtime& r) {
  auto entered = r.enter_anew();
  if (entered) return *entered;
  (void)fail_attempt(std::move(entered.error()));
  return nullptr;
}

}  // namespace

attempt fail_attempt(error why) {
  this_error = std::move(why);
  return attempt::failed;
}
error last_error() { return std::move(this_error); }

STELE_IN_ONE_PIECE begun begin_transaction(runtime& r, bool writes, durability d) {
  if (this_runtime != nullptr) [[unlikely]]
    return begin_inside(r, writes, d);
  visitor* v = r.enter();
  if (v == nullptr) [[unlikely]]
    if (v = enter_anew(r); v == nullptr) return begun::refused;
  this_visitor = v;
  this_runtime = &r;
  if (writes) {
    r.lock_writer(*v);
    r.see_ordered(*v, true);
  } else {
    r.see_ordered(*v, false);
    r.begin_read(*v);
  }
  begin_or_leave(*v, writes, d);
  return begun::fresh;
}

STELE_IN_ONE_PIECE attempt commit_transaction() {
  const attempt done = this_visitor->tx->commit();
  if (done != attempt::retry) finish();
  return done;
}

void abandon_transaction() noexcept {
  this_visitor->tx->rollback();
  finish();
}

namespace {

// Gathers the free memory of a full pool, in transactions of its own. Without success the next allocation fails.
void reclaim(transaction& tx) noexcept {
  if (this_runtime->state().overlays.load(std::memory_order_relaxed) != 0) this_runtime->retire_idle(*this_visitor);  // what ordered commits freed
  this_runtime->recall_idle(*this_visitor);
  tx.outgrown = true;  // what it frees is counted to fit the log's end
  for (std::size_t chunks = 1; chunks != 0;) {
    try {
      tx.begin(*this_visitor, true, false);
      chunks = tx.reclaim();
      const attempt done = tx.commit();
      if (done == attempt::committed) continue;
      if (done == attempt::failed) return;
    } catch (...) {
    }
    return tx.rollback();
  }
}

}  // namespace

// Leaves the transaction rolled back but the thread inside; run_transaction begins it again.
void retry_transaction() noexcept {
  transaction& tx = *this_visitor->tx;
  tx.rollback();
  const unsigned attempts = ++tx.attempts;
  if (attempts >= 2 && this_runtime->state().overlays.load(std::memory_order_relaxed) != 0) this_runtime->retire_idle(*this_visitor);  // the lock in the way may be an ordered commit's
  if (tx.wants_reclaim) {
    tx.wants_reclaim = false;
    tx.reclaimed = true;
    reclaim(tx);
  } else if (attempts == 16 && !this_visitor->holds_unlucky) {
    this_runtime->unlucky().lock();
    this_visitor->holds_unlucky = true;
  } else {
    back_off(attempts);
  }
  this_visitor->retrying = true;
}

}  // namespace stele::detail
