// An open pool: its state, its engine, and the parts of session/, each a type with its own state.
// No part knows another or the runtime, but for thread_registry, which a pause stops. What a step
// needs of several parts, the runtime calls in its order, or passes to the one that takes it.
//
// A thread's first transaction on a pool gives the thread a thread_context and one of the logs. It
// announces each transaction (thread_context::in_transaction), then passes the gates of its log
// (log_slot::owner) and of the biased lock (base/asymmetric_gate.h). Each gate is open for one
// thread; another thread closes it for that one.
//
// Locks are taken in this order: the front end's, maintenance(), that of the one pause,
// thread_registry's mutex(), that of its list of threads. The writer's lock and then that of the
// bias come before the list's; that of the bias and mutex() are taken at once or alone. Callbacks
// and the list of open pools hold theirs beside no other of these.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <base/forks.h>
#include <base/mutant.h>
#include <stele/pool.h>
#include <tx/engine.h>
#include <tx/session/bias.h>
#include <tx/session/durable_callbacks.h>
#include <tx/session/file_watch.h>
#include <tx/session/front_end.h>
#include <tx/session/lock_tables.h>
#include <tx/session/open_list.h>
#include <tx/session/page_snapshots.h>
#include <tx/session/pauses.h>
#include <tx/session/pool_facts.h>
#include <tx/session/registrations.h>
#include <tx/session/thread_context.h>
#include <tx/session/thread_registry.h>
#include <tx/session/writer_lock.h>
#include <tx/transaction.h>

#include <mutex>
#include <optional>
#include <source_location>
#include <utility>

namespace stele::detail {

class reader_server;
class reader_session;

class runtime {
 public:
  runtime(std::unique_ptr<pool_state> s, std::unique_ptr<engine> e, const pool_options& options,
          std::string mechanism, durability_level level);
  // Of a pool that is open for reading.
  runtime(std::unique_ptr<pool_state> s, std::unique_ptr<reader_session> session);
  ~runtime();

  pool_state& state() noexcept { return *state_; }
  const pool_state& state() const noexcept { return *state_; }
  // Precondition: reading() is null. begin_maintenance() refuses other pools with an error.
  engine& mechanism() noexcept {
    STELE_ASSERT(engine_ != nullptr && reading_ == nullptr);
    return *engine_;
  }
  const std::string& mechanism_name() const noexcept { return facts_.mechanism; }
  concurrency policy() const noexcept { return facts_.policy; }
  bool in_place() const noexcept { return facts_.in_place; }
  bool defers_ordered() const noexcept { return facts_.defers_ordered; }
  bool wants_to_defer() const noexcept { return facts_.wants_to_defer; }
  bool tells_ordered() const noexcept { return facts_.tells_ordered; }
  // Stores of updates go to a write set, home is in place, and the mechanism asks for no loads.
  bool has_plain_updates() const noexcept { return file_watch_.has_plain_updates(); }
  // Home is in place.
  bool has_plain_reads() const noexcept { return !facts_.home_is_remapped; }
  std::byte* base() const noexcept { return state_->file.address(); }
  std::size_t size() const noexcept { return state_->file.header().offset_end(); }
  std::uint64_t heap_begin() const noexcept { return state_->file.header().chunks_offset; }
  // Home is not at the addresses that the user sees, so every load goes through the transaction.
  bool home_is_remapped() const noexcept { return facts_.home_is_remapped; }
  // Where the transactions of a log find home.
  home_of_log home(unsigned log) const;
  // Those in use. Thread-safe.
  lock_table locks() noexcept {
    const std::lock_guard hold(threads_.mutex());
    return locks_.in_use();
  }
  // Transactions use this table from now on. Precondition: a pause.
  void use_locks(const lock_table& t) noexcept;
  // What the locks of a log's transactions name as their owner. A reader's own
  // locks are nobody's: the numbers of its logs are those of the writer's too.
  unsigned lock_owner(unsigned log) const noexcept {
    const bool wrong = planted_in_schedule_explorer(base::mutant::readers_own_locks);
    return reading_ == nullptr || wrong ? log : ~0u;
  }
  // The table of the policy: stm's own, or none.
  lock_table own_locks() const noexcept { return locks_.own(); }
  durability_level durability_in_force() const noexcept { return facts_.durability; }

  // Returns the calling thread's thread_context, which is now in a transaction and owns a log.
  // Errors: poisoned; invalid_argument, when the pool has been closed.
  [[nodiscard]] result<thread_context*> enter_slow();
  // The calling thread's thread_context, which is in no transaction. Errors: poisoned.
  [[nodiscard]] result<thread_context*> register_thread();
  thread_context* enter() noexcept;  // the fast path; null: call enter_slow()
  // The same for a transaction that others must not have to wait for, single_writer's readers too:
  // on return the thread does not have the bias.
  [[nodiscard]] result<thread_context*> enter_without_bias();
  void leave(thread_context& v) noexcept { v.in_transaction.withdraw(); }
  // stm, in a transaction of v: no other transaction runs before it ends.
  bool is_alone(const thread_context& v) const noexcept { return bias_.is_of(v); }
  // stm, at the end of a transaction of v.
  void consider_bias(thread_context& v) noexcept {
    if (bias_.is_earned_by(v)) [[unlikely]]
      grant_bias(v);
  }
  void unregister_thread(thread_context& v) noexcept;  // when its thread ends

  void lock_writer(thread_context& v) {
    if (policy() == concurrency::single_writer && !bias_.is_of(v)) lock_writer_slow(v);
  }
  void unlock_writer(thread_context& v) noexcept;  // precondition: v.holds_writer
  // Neither lock_writer(), begin_read() nor flush_deferred_of_others() has anything to do for v.
  bool may_begin_at_once(const thread_context& v) const noexcept {
    return policy() == concurrency::stm ||
           ((policy() == concurrency::external || bias_.is_of(v)) &&
            state_->deferred_logs.load(std::memory_order_acquire) == 0);
  }
  void begin_read(thread_context& v);
  void block_readers();
  void unblock_readers() noexcept { writer_.unblock_readers(); }
  // On return every commit draws its TxID in order. Called under txid_mutex by an ordered commit
  // that finds ordered mode off.
  void enter_ordered_mode(unsigned log);
  // On return the deferred commits of other threads are stored home. For policies without line
  // locks, whose transactions read home directly.
  void flush_deferred_of_others(const thread_context& v, bool writes) {
    if (policy() != concurrency::stm && state_->deferred_logs.load(std::memory_order_acquire) != 0)
        [[unlikely]]
      flush_deferred_of_others_slow(v, writes);
  }
  // Makes deferred commits durable and releases the line locks of idle threads' overlays. A running
  // thread releases its own at its next begin.
  void release_idle_overlays(const thread_context& v) noexcept;
  // While the pause exists, no transaction runs or begins, and every other commit is stored home.
  // Waits for running transactions; the calling thread must not be in one. Allocates no memory.
  [[nodiscard]] pool_pause pause(
      const std::source_location& at = std::source_location::current()) noexcept {
    pool_pause paused = pause(pauses_.one(), nullptr);
    if (base::planted_at_in_schedule_explorer(at)) (void)pool_pause(std::move(paused));  // ends it
    return paused;
  }
  // The calling thread is in the report of a backup that pauses the pool until it ends, because
  // stores go home as they are made: what waits for the pause would wait for ever.
  bool is_paused_by_this_report() const noexcept;

  void set_front_end_lock(front_end_lock* l) noexcept { front_end_.set_lock(l); }
  front_end_hold hold_front_end() noexcept { return front_end_.hold(); }

  // Held by long work on the whole pool: backup, growth, check.
  std::mutex& maintenance() noexcept { return pauses_.maintenance(); }
  // The snapshots of a running backup and of long reads, which keep a page before it is stored to.
  // Added and removed while no transaction runs.
  void add_page_snapshot(page_snapshot& s) noexcept;
  void remove_page_snapshot(page_snapshot& s) noexcept;
  // Under a pause: whether another one has a place. A backup that ends gives its own back after
  // another one may have begun.
  bool has_place_for_page_snapshot() const noexcept;
  bool has_page_snapshots() const noexcept { return page_snapshots_.any(); }
  void keep_page(std::uint64_t offset) noexcept;

  // A read that has lost attempts goes on as a long read (tx/long_read.h), which writers do not
  // break. By its thread, between two attempts.
  bool needs_long_read(const thread_context& v) const noexcept;
  void begin_long_read(thread_context& v) noexcept;
  void end_long_read(thread_context& v) noexcept;

  // L1 and L2 of a snapshot that a program, or a reader in another process, holds. The calling
  // thread is in no transaction. Errors: in_use, beside too many of them; those of keep_home().
  [[nodiscard]] result<> begin_keeping_pages(home_snapshot& s);
  void end_keeping_pages(page_snapshot& s) noexcept;
  // The pool's size, for a thread in no transaction. A growth may follow before the next pause.
  std::uint64_t size_between_pauses() {
    const auto one = pauses_.one();
    return size();
  }
  // This process was forked from the one that opened the pool. It uses nothing of the pool: what it
  // calls is refused before a lock is taken.
  bool is_of_parent() const noexcept { return entry_.mark.is_of_parent(); }
  open_entry<runtime>& entry() noexcept { return entry_; }
  // Called in the child, by its one thread.
  void enter_child() noexcept;
  // The end of the pool in a child: gives back its copies of file and mapping. The rest stays: its
  // destructors would wait for the parent's threads.
  void leave_to_parent() noexcept;
  // Why a poisoned pool is refused.
  std::unexpected<error> unusable() const;
  // Lets other processes read the pool beside this one; as far as the system has what that needs.
  void serve_readers();
  // The pool is open for reading, and another process may have it open; null: this process has it.
  reader_session* reading() const noexcept { return reading_.get(); }

  // Returns the thread caches of idle threads to the heap. These threads lose their logs and
  // acquire one again at their next begin.
  void reclaim_idle_caches(const thread_context& v) noexcept { threads_.reclaim_idle_caches(v); }
  // A transaction that has lost many attempts goes on while no other runs: its next attempt meets
  // no conflict. Called by its thread, between two attempts. Does nothing while another thread runs
  // alone, or waits for a pause and so for this one.
  void run_alone(thread_context& v) noexcept;
  void end_running_alone(thread_context& v) noexcept { pauses_.end_running_alone(v); }

  // Errors: poisoned; corrupt, when the file is shorter than the pool, which poisons it.
  [[nodiscard]] result<> check_usable();
  // Sees whether the name that the pool was opened by still leads to its file, and whether that
  // still holds this pool. If not, updates are refused, or the pool is poisoned. Not beside
  // close().
  void look_at_file() noexcept;
  // As seen last.
  storage::file_place place() const noexcept { return file_watch_.place(); }
  error place_error() const;
  // Looks. Errors: read_only, if the name does not lead to the file.
  [[nodiscard]] result<> check_in_place();
  [[nodiscard]] result<> close();
  // Calls `call` once when close() begins, while transactions may still begin.
  void before_close(std::function<void()> call) { front_end_.before_close(std::move(call)); }
  void notify_when_durable(std::uint64_t txid, std::function<void(result<>)> callback);
  [[nodiscard]] result<void*> root(std::size_t size);
  // Of a pool that is open for reading. Errors: layout, corrupt; not_found, if
  // it has none yet.
  [[nodiscard]] result<void*> find_root(std::size_t size, std::uint64_t known_version);
  std::uint64_t root_offset() const noexcept;  // read from home; while no transaction runs
  // Bytes that the pool may grow to by itself; 0: none.
  std::uint64_t max_size() const noexcept { return facts_.options.max_size; }
  pool_counters counters() const noexcept;
  pool_space space();
  // TxID of the newest commit that has returned.
  std::uint64_t newest_commit() const noexcept { return threads_.newest_commit(); }

 private:
  [[nodiscard]] result<void*> migrate_root(std::uint64_t* header, std::uint64_t held_version,
                                           std::size_t size);
  void notify_durable() noexcept;
  [[nodiscard]] result<> close_without_readers();
  [[nodiscard]] result<> close_engine();
  // For assertions of what a pause's thread does under it.
  bool is_paused() const noexcept { return base::holds(threads_.is_paused()); }
  // Except one thread's, if it is named. `one`: of pauses_.
  [[nodiscard]] pool_pause pause(std::unique_lock<std::mutex> one,
                                 const thread_context* except) noexcept;
  std::unexpected<error> running_error() const;
  std::unexpected<error> reporting_error() const;
  [[nodiscard]] result<> add_home_snapshot(home_snapshot& s);
  void lock_writer_slow(thread_context& v);
  // Makes deferred commits durable and releases the line locks of t's, unless the pool is poisoned:
  // lines that are not stored home stay locked.
  void flush_and_release(transaction& t) noexcept;
  void flush_deferred_of_others_slow(const thread_context& v, bool writes);
  [[nodiscard]] result<> acquire_log(thread_context& v);
  void assign_log(thread_context& v, log_slot& p);
  void grant_bias(thread_context& v) noexcept;

  // Up to bias_, what the fast paths read.
  std::unique_ptr<pool_state> state_;
  // One of the two; `reading_`: the pool is open for reading.
  std::unique_ptr<engine> engine_;
  std::unique_ptr<reader_session> reading_;
  open_entry<runtime> entry_;
  const pool_facts facts_;
  file_watch file_watch_;
  lock_tables locks_;  // the one in use changes in a pause, under threads_.mutex()
  thread_registry threads_;
  bias bias_;
  writer_lock writer_;  // single_writer
  pauses pauses_;
  front_end front_end_;
  page_snapshots page_snapshots_;
  std::unique_ptr<reader_server> readers_;
  durable_callbacks durable_callbacks_;
};

inline thread_context* runtime::enter() noexcept {
  if (last_registration.id != entry_.id || state_->poisoned.load(std::memory_order_relaxed))
      [[unlikely]]
    return nullptr;
  thread_context& v = *last_registration.context;
  STELE_ASSERT(v.is_between_transactions());
  STELE_ASSERT(v.tx == nullptr || v.tx->log() < threads_.logs().size());
  v.in_transaction.announce(true);
  const bool owns = threads_.owns(v);
  const thread_context* const other = bias_.look();
  if (owns && (other == nullptr || other == &v)) [[likely]]
    return &v;
  v.in_transaction.withdraw();
  return nullptr;
}

// In a child of fork: the transaction that the forking thread is in, if it is in one, is refused
// all that it does, and cannot commit.
void leave_transaction_to_parent() noexcept;

// Begins a read of this thread, which is in no transaction, unless another thread would have to be
// waited for. False: not begun.
[[nodiscard]] bool begin_read_at_once(runtime& r);
// What this thread's running update has taken from the heap, less what it has freed, in bytes.
std::int64_t bytes_allocated_by_transaction() noexcept;

}  // namespace stele::detail
