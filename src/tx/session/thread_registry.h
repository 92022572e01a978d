// The threads that use an open pool, and who owns which of its logs.
//
// A thread owns a log until it ends, or until another thread finds all logs taken and takes over a
// log whose owner is between transactions. The owner notices at its next begin: it announces its
// transaction, then looks at log_slot::owner (base/asymmetric_gate.h). Whoever takes a log closes
// that gate, then looks at the owner's announcement.
//
// Owners change under mutex(), which is taken before the mutex of the list of threads. That one is
// for threads that wait for others while the holder of mutex() may be waiting for them.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <media/cpu.h>
#include <tx/session/thread_context.h>
#include <tx/transaction.h>
#include <tx/transaction/statistics.h>

#include <chrono>
#include <condition_variable>
#include <expected>
#include <memory>
#include <mutex>
#include <vector>

namespace stele::detail {

struct alignas(64) log_slot {
  std::unique_ptr<transaction> tx;
  base::asymmetric_gate<thread_context*> owner;
  thread_context* paused_owner = nullptr;  // the owner that a pause took the log from
  statistics counts;
};

class thread_registry {
 public:
  explicit thread_registry(std::size_t logs) : slots_(logs) {}

  std::vector<log_slot>& logs() noexcept { return slots_; }
  const std::vector<log_slot>& logs() const noexcept { return slots_; }
  // By v's thread, which has announced a transaction: the log that it owned last is still its own.
  bool owns(const thread_context& v) const noexcept {
    return v.tx != nullptr && slots_[v.tx->log()].owner.look() == &v;
  }
  std::mutex& mutex() noexcept { return mutex_; }

  thread_context& add();
  // v's thread ends: its logs are free. Under mutex().
  void remove(thread_context& v) noexcept;
  bool has_one_thread() const noexcept { return threads_.size() == 1; }  // under mutex()
  bool runs_transaction() const noexcept;                                // under mutex()
  bool others_run(const thread_context& v) const noexcept;
  // Waits for single_writer's readers, none of which begins any more. Not under mutex(): its holder
  // may be waiting for the writer that calls this.
  void await_readers() const noexcept {
    const std::lock_guard hold(threads_mutex_);
    for (const auto& v : threads_)
      while (v->reading.load(std::memory_order_seq_cst)) media::cpu::relax();
  }

  enum class refusal { closed, paused };
  // Finds a log for a thread: a free one, else one whose owner is between transactions. Waits for
  // either if there is none. assign(slot) makes the thread its owner, under mutex(). `last`: the
  // log that it owned last, or null. `waits_for_pause`: else a pause refuses it.
  template <class Assign>
  std::expected<log_slot*, refusal> acquire(thread_context& v, log_slot* last, bool waits_for_pause,
                                            Assign&& assign);

  // The thread that may be in a transaction on this log: its owner, or the thread that a pause took
  // it from. Null: none. Under mutex().
  const thread_context* user_of(const log_slot& p) const noexcept;
  // Returns the thread caches of idle threads but v to the heap. These threads lose their logs.
  void reclaim_idle_caches(const thread_context& v) noexcept;
  // Releases the line locks of v's overlay, and by release(transaction) those of idle threads.
  // Under mutex().
  template <class Release>
  void release_idle_overlays(const thread_context& v, Release&& release) noexcept;

  // A pause (session/pauses.h): takes every log from its owner, except one thread's. Who begins
  // from the caller's heavy fence on waits in acquire().
  void stop(const thread_context* except) noexcept;
  void await_stopped() const noexcept;  // the transactions that still run
  // Releases the overlays of the logs that were taken, unless the pool is poisoned: what is not
  // home stays in them. Returns their caches to the heap.
  void retire_stopped(const thread_context* except, const std::atomic<bool>& poisoned) noexcept;
  void resume() noexcept;
  bool is_paused() const noexcept { return paused_; }  // under mutex(), or a pause

  enum class closing { closed, was_closed, refused };
  // Takes every log from its owner, so that no transaction begins. Refused: one runs, or
  // is_in_use(), and all is as it was.
  template <class InUse>
  [[nodiscard]] closing close(InUse&& is_in_use);
  void reopen() noexcept;  // the pool stays open; its threads acquire logs again
  bool is_closed() const noexcept { return closed_; }

  void count_ended_read(const statistics& counts) noexcept;
  void add_counts(pool_counters& c) const noexcept;
  std::uint64_t newest_commit() const noexcept;  // TxID of the newest commit that has returned

 private:
  bool is_in_transaction(const thread_context* v) const noexcept;
  bool owns_a_log(const thread_context& v) const noexcept;  // for assertions, under mutex()

  std::vector<log_slot> slots_;
  std::mutex mutex_;
  std::condition_variable released_;  // a log, or by a pause
  bool paused_ = false;               // under mutex_
  bool closed_ = false;               // under mutex_
  statistics ended_reads_;            // long ones; under mutex_
  // Protects threads_ together with mutex_: writers hold both, a reader holds either.
  mutable std::mutex threads_mutex_;
  std::vector<std::unique_ptr<thread_context>> threads_;
};

template <class Assign>
std::expected<log_slot*, thread_registry::refusal> thread_registry::acquire(thread_context& v,
                                                                            log_slot* last,
                                                                            bool waits_for_pause,
                                                                            Assign&& assign) {
  const auto assigned = [&](log_slot& p) {
    assign(p);
    STELE_ASSERT(p.owner.peek() == &v);
    return &p;
  };
  std::unique_lock hold(mutex_);
  for (;;) {
    if (closed_) return std::unexpected(refusal::closed);
    if (paused_) {
      if (!waits_for_pause) return std::unexpected(refusal::paused);
      released_.wait_for(hold, std::chrono::milliseconds(1));
      continue;
    }
    // Another thread that looked for a log, or for idle overlays, may have had v's for a moment.
    if (last != nullptr && last->owner.peek() == &v) return assigned(*last);
    for (log_slot& p : slots_)
      if (p.owner.peek() == nullptr) return assigned(p);
    for (log_slot& p : slots_) {
      thread_context* const owner = p.owner.exchange(&v);
      STELE_ASSERT(owner != nullptr);
      // An owner that begins from here on sees that it has lost the log; one already in a
      // transaction is seen below.
      base::asymmetric_fence_heavy();
      if (!owner->in_transaction.seen()) return assigned(p);
      p.owner.open(owner);
    }
    released_.wait_for(hold, std::chrono::microseconds(100));
  }
}

template <class Release>
void thread_registry::release_idle_overlays(const thread_context& v, Release&& release) noexcept {
  for (log_slot& p : slots_) {
    thread_context* const owner = p.owner.peek();
    const thread_context* const user = user_of(p);
    if (!p.tx || !p.tx->has_overlay()) continue;
    if (user == &v) {
      p.tx->release_overlay();
      continue;
    }
    p.owner.close(nullptr);  // as in acquire()
    if (user == nullptr || !user->in_transaction.seen()) {
      STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
      release(*p.tx);
      if (user == nullptr) p.tx->return_cached_blocks();
    }
    p.owner.open(owner);
  }
}

template <class InUse>
thread_registry::closing thread_registry::close(InUse&& is_in_use) {
  std::vector<thread_context*> owners(slots_.size());
  const std::lock_guard hold(mutex_);
  if (closed_) return closing::was_closed;
  for (std::size_t i = 0; i < owners.size(); ++i) owners[i] = slots_[i].owner.exchange(nullptr);
  // An owner that begins from here on sees that it has lost its log; one in a transaction is seen.
  base::asymmetric_fence_heavy();
  closed_ = !runs_transaction() && !is_in_use();
  if (closed_) return closing::closed;
  for (std::size_t i = 0; i < owners.size(); ++i) slots_[i].owner.open(owners[i]);
  return closing::refused;
}

}  // namespace stele::detail
