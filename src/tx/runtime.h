// An open pool: its state, its engine, its threads, and the shared parts of the concurrency
// policies.
//
// A thread's first transaction on a pool gives the thread a thread_context and one of the logs. It
// owns the log until it ends, or until another thread finds all logs taken and takes over a log
// whose owner is between transactions. The owner notices at its next begin.
//
// A thread announces each transaction (thread_context::in_transaction), then passes the gates of
// its log (log_slot::owner) and of the biased lock (base/asymmetric_gate.h). Each gate is open for
// one thread; another thread closes it for that one.
#pragma once

#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <base/forks.h>
#include <base/mutant.h>
#include <stele/pool.h>
#include <tx/engine.h>
#include <tx/page_snapshot.h>
#include <tx/transaction.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace stele::detail {

class reader_server;
class reader_session;

// What a pool keeps for one thread. Its thread stores to it in each transaction.
struct alignas(64) thread_context {
  thread_context();
  ~thread_context();

  base::announcement<> in_transaction;  // between begin and end of a transaction
  // single_writer: a reader that home stores must wait for. Not an announcement: readers are
  // blocked by each update, for which the heavy fence would cost too much, so both sides pay a full
  // fence.
  std::atomic<bool> reading{false};
  transaction* tx = nullptr;  // of the log that this thread owned last
  bool holds_writer = false;  // single_writer: the writer lock
  bool runs_alone = false;    // runtime::run_alone
  unsigned lone_commits = 0;  // commits in a row without another thread's between them; stm
  std::unique_ptr<detail::long_read> long_read;  // of the running transaction
  std::unique_ptr<moment> foreign_moment;        // likewise; kept by another process

  void count_lone_commit(bool follows_own) noexcept {
    lone_commits = follows_own ? lone_commits + 1 : 0;
  }
};

struct thread_registration {
  std::uint64_t id;  // of the runtime
  thread_context* context;
};
extern constinit thread_local thread_registration last_registration;  // of this thread

// A front end's lock. Its transactions hold it while their code may wait for other threads (a
// `with` of Python).
class front_end_lock {
 public:
  // Waits for the transaction of another thread. False, and not locked: the holder closes the pool,
  // and may wait for the calling thread.
  [[nodiscard]] virtual bool acquire() noexcept = 0;
  virtual void release() noexcept = 0;

 protected:
  ~front_end_lock() = default;
};

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
  const std::string& mechanism_name() const noexcept { return mechanism_name_; }
  concurrency policy() const noexcept { return options_.policy; }
  // Stores go home as they are made: with no crash protection and one writer, a write set would
  // only cost time.
  bool in_place() const noexcept { return in_place_; }
  bool defers_ordered() const noexcept { return defers_ordered_; }
  // Whether ordered commits shall wait in memory, though the mechanism may have none that do: a
  // fence is a sync, or the options say so.
  bool wants_to_defer() const noexcept { return options_.engine.defer_ordered == deferral::always; }
  // Whether an ordered commit differs from a durable one.
  bool tells_ordered() const noexcept { return tells_ordered_; }
  // Stores of updates go to a write set, home is in place, and the mechanism asks for no loads.
  bool has_plain_updates() const noexcept {
    return has_plain_updates_.load(std::memory_order_relaxed);
  }
  // Home is in place.
  bool has_plain_reads() const noexcept { return !home_is_remapped_; }
  std::byte* base() const noexcept { return state_->file.address(); }
  std::size_t size() const noexcept { return state_->file.header().offset_end(); }
  std::uint64_t heap_begin() const noexcept { return state_->file.header().chunks_offset; }
  // Home is not at the addresses that the user sees, so every load goes through the transaction.
  bool home_is_remapped() const noexcept { return home_is_remapped_; }
  // Where the transactions of a log find home.
  home_of_log home(unsigned log) const;
  // Those in use. Thread-safe.
  lock_table locks() noexcept {
    const std::lock_guard hold(registry_);
    return locks_;
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
  lock_table own_locks() const noexcept;
  durability_level durability_in_force() const noexcept { return durability_; }

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
  bool is_alone(const thread_context& v) const noexcept { return biased_.peek() == &v; }
  // stm, at the end of a transaction of v.
  void consider_bias(thread_context& v) noexcept {
    if (v.lone_commits >= bias_threshold) [[unlikely]]
      if (v.lone_commits >= lone_commits_before_bias_.load(std::memory_order_relaxed))
        grant_bias(v);
  }
  void unregister_thread(thread_context& v) noexcept;  // when its thread ends

  void lock_writer(thread_context& v) {
    if (policy() == concurrency::single_writer && biased_.peek() != &v) lock_writer_slow(v);
  }
  void unlock_writer(thread_context& v) noexcept;  // precondition: v.holds_writer
  // Neither lock_writer(), begin_read() nor flush_deferred_of_others() has anything to do for v.
  bool may_begin_at_once(const thread_context& v) const noexcept {
    return policy() == concurrency::stm ||
           ((policy() == concurrency::external || biased_.peek() == &v) &&
            state_->deferred_logs.load(std::memory_order_acquire) == 0);
  }
  void begin_read(thread_context& v);
  void block_readers();
  void unblock_readers() noexcept;
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
  // While a pause exists, no transaction runs or begins, except one thread's if that is named, and
  // every other commit is stored home. The constructor waits for running transactions; the calling
  // thread must not be in one, unless it is named. Allocates no memory.
  class pause {
   public:
    explicit pause(runtime& r) noexcept;
    // `one`: holds the pause mutex.
    pause(runtime& r, std::unique_lock<std::mutex> one, const thread_context* except) noexcept;
    ~pause();
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;

   private:
    void stop() noexcept;
    void wait() noexcept;
    bool is_in_transaction(const thread_context* v) const noexcept;
    runtime& runtime_;
    const std::unique_lock<std::mutex> one_;
    const thread_context* const except_;
  };
  // The calling thread is in the report of a backup that pauses the pool until it ends, because
  // stores go home as they are made: what waits for the pause would wait for ever.
  bool is_paused_by_this_report() const noexcept;

  // The lock of the pool's front end, which outlives its use. The work of readers in other
  // processes takes it before it pauses: a pause that waits for a `with` holds up all other
  // threads, also one that the `with` waits for.
  void set_front_end_lock(front_end_lock* l) noexcept {
    STELE_ASSERT_ALWAYS(l != nullptr);  // it outlives its use, so it is never taken back
    front_end_lock_.store(l);
  }
  class front_end_hold {
   public:
    explicit front_end_hold(runtime& r) noexcept : lock_(r.front_end_lock_.load()) {
      if (lock_ != nullptr && !lock_->acquire()) lock_ = nullptr;
    }
    front_end_hold(front_end_hold&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    ~front_end_hold() { release(); }
    void release() noexcept {
      if (auto* const held = std::exchange(lock_, nullptr)) held->release();
    }

   private:
    front_end_lock* lock_;
  };

  // Held by long work on the whole pool: backup, growth, check.
  std::mutex& maintenance() noexcept { return maintenance_mutex_; }
  // The snapshots of a running backup and of long reads, which keep a page before it is stored to.
  // Added and removed while no transaction runs.
  void add_page_snapshot(page_snapshot& s) noexcept;
  void remove_page_snapshot(page_snapshot& s) noexcept;
  // Under a pause: whether another one has a place. A backup that ends gives its own back after
  // another one may have begun.
  bool has_place_for_page_snapshot() const noexcept;
  bool has_page_snapshots() const noexcept {
    return page_snapshot_count_.load(std::memory_order_relaxed) != 0;
  }
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
    const std::lock_guard hold(pause_mutex_);
    return size();
  }
  // This process was forked from the one that opened the pool. It uses nothing of the pool: what it
  // calls is refused before a lock is taken.
  bool is_of_parent() const noexcept { return mark_.is_of_parent(); }
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
  void reclaim_idle_caches(const thread_context& v) noexcept;
  // A transaction that has lost many attempts goes on while no other runs: its next attempt meets
  // no conflict. Called by its thread, between two attempts. Does nothing while another thread runs
  // alone, or waits for a pause and so for this one.
  void run_alone(thread_context& v) noexcept;
  void end_running_alone(thread_context& v) noexcept;

  // Errors: poisoned; corrupt, when the file is shorter than the pool, which poisons it.
  [[nodiscard]] result<> check_usable();
  // Sees whether the name that the pool was opened by still leads to its file, and whether that
  // still holds this pool. If not, updates are refused, or the pool is poisoned. Not beside
  // close().
  void look_at_file() noexcept;
  // As seen last.
  storage::file_place place() const noexcept { return place_.load(std::memory_order_relaxed); }
  error place_error() const;
  // Looks. Errors: read_only, if the name does not lead to the file.
  [[nodiscard]] result<> check_in_place();
  [[nodiscard]] result<> close();
  // Calls `call` once when close() begins, while transactions may still begin.
  void before_close(std::function<void()> call) { before_close_ = std::move(call); }
  void notify_when_durable(std::uint64_t txid, std::function<void(result<>)> callback);
  [[nodiscard]] result<void*> root(std::size_t size);
  // Of a pool that is open for reading. Errors: layout, corrupt; not_found, if
  // it has none yet.
  [[nodiscard]] result<void*> find_root(std::size_t size, std::uint64_t known_version);
  std::uint64_t root_offset() const noexcept;  // read from home; while no transaction runs
  // The runtime owns the tape, which ends when the runtime is destroyed.
  void set_tape(std::shared_ptr<void> tape) noexcept { tape_ = std::move(tape); }
  // Bytes that the pool may grow to by itself; 0: none.
  std::uint64_t max_size() const noexcept { return options_.max_size; }
  pool_counters counters() const noexcept;
  pool_space space();
  std::uint64_t newest_commit() const noexcept;  // TxID of the newest commit that has returned

 private:
  // Consecutive commits of one thread before it gets the bias. The grant and the revocation cost a
  // system call each.
  static constexpr unsigned bias_threshold = base::schedule_explorer_build ? 2 : 512;
  static constexpr unsigned max_bias_threshold = base::schedule_explorer_build ? 2 : 1u << 20;

  struct alignas(64) log_slot {
    std::unique_ptr<transaction> tx;
    base::asymmetric_gate<thread_context*> owner;
    thread_context* paused_owner = nullptr;  // the owner that a pause took the log from
    statistics counts;
  };

  [[nodiscard]] result<void*> migrate_root(std::uint64_t* header, std::uint64_t held_version,
                                           std::size_t size);
  // Call callbacks of commits: of those that are durable; of all, with how their pool ended.
  void notify_durable() noexcept;
  // A reader has no commits that could wait.
  std::uint64_t durable_through() const noexcept {
    return engine_ != nullptr ? engine_->durable_through() : pool_state::no_commit;
  }
  void end_durable_callbacks(const result<>& how) noexcept;
  void call_durable_callbacks(std::unique_lock<std::mutex> hold, std::uint64_t through,
                              const result<>& how) noexcept;
  [[nodiscard]] result<> close_without_readers();
  [[nodiscard]] result<> close_engine();
  bool runs_transaction() const noexcept;
  bool stop_for_close(std::span<thread_context*> owners) noexcept;
  // For assertions, of a thread of its own: nothing of a transaction is left, as at its begin.
  static bool is_between_transactions(const thread_context& v) noexcept {
    return !v.holds_writer && !v.runs_alone && v.long_read == nullptr &&
           v.foreign_moment == nullptr;
  }
  // For assertions, under registry_.
  bool owns_a_log(const thread_context& v) const noexcept;
  // For assertions, under a pause.
  bool counts_page_snapshots() const noexcept;
  // For assertions of what a pause's thread does under it.
  bool is_paused() const noexcept { return base::holds(paused_); }
  std::unexpected<error> running_error() const;
  std::unexpected<error> reporting_error() const;
  void lock_writer_slow(thread_context& v);
  // Makes deferred commits durable and releases the line locks of t's, unless the pool is poisoned:
  // lines that are not stored home stay locked.
  void flush_and_release(transaction& t) noexcept;
  void flush_deferred_of_others_slow(const thread_context& v, bool writes);
  [[nodiscard]] result<transaction*> acquire_log(thread_context& v);
  transaction* assign_log(thread_context& v, log_slot& p);
  const thread_context* user_of(const log_slot& p) const noexcept;
  void revoke_bias(const thread_context& v);
  void grant_bias(thread_context& v) noexcept;

  std::shared_ptr<void> tape_;  // outlives the engine, which records on it
  std::unique_ptr<pool_state> state_;
  std::unique_ptr<engine> engine_;  // null: the pool is open for reading
  pool_options options_;
  std::string mechanism_name_;
  durability_level durability_ = durability_level::none;
  // Until a constructor with an engine says more, those of a pool that is open for reading.
  bool home_is_remapped_ = true;
  bool in_place_ = false;
  bool defers_ordered_ = false, tells_ordered_ = false;
  std::atomic<bool> has_plain_updates_{false};
  std::atomic<storage::file_place> place_{storage::file_place::in_place};
  std::unique_ptr<line_lock[]> own_locks_;  // of the policy stm
  std::uint64_t own_lock_count_ = 0;
  lock_table locks_;  // in use; changes during a pause, under registry_
  std::vector<log_slot> log_slots_;
  std::uint64_t id_;  // of this runtime; never reused
  const base::process_mark mark_;
  friend class open_list;
  runtime* next_open_ = nullptr;  // of all open pools of this process
  unsigned ending_threads_ = 0;   // that give back what they have here; under the list's mutex

  std::mutex registry_;  // protects the owners of log_slots_
  std::condition_variable log_released_;
  // Protects threads_ together with registry_: writers hold both, a reader holds either. Taken
  // after registry_.
  std::mutex threads_mutex_;
  std::vector<std::unique_ptr<thread_context>> threads_;
  // single_writer, stm: the thread that takes no locks, because no other thread runs transactions.
  // Another thread revokes the bias when it begins, and waits until that one's transaction has
  // ended.
  base::asymmetric_gate<thread_context*> biased_;
  std::mutex bias_mutex_;
  // stm. Doubles with each revocation: where threads take turns, a bias is not worth its calls.
  std::atomic<unsigned> lone_commits_before_bias_{bias_threshold};
  thread_context bias_being_revoked_;
  const thread_context* last_writer_ = nullptr;  // under writer_
  unsigned writer_streak_ = 0;                   // under writer_
  std::mutex writer_;
  std::atomic<bool> writer_locked_{false};
  std::atomic<bool> readers_blocked_{false};
  std::atomic<front_end_lock*> front_end_lock_{nullptr};
  std::mutex maintenance_mutex_;
  std::mutex pause_mutex_;      // there is one pause at a time; taken before registry_
  bool paused_ = false;         // under registry_
  std::mutex alone_mutex_;      // held by the thread that runs alone
  std::optional<pause> alone_;  // under alone_mutex_
  static constexpr unsigned max_long_reads = 15;  // with those of other processes
  [[nodiscard]] bool reserve_moment() noexcept;
  void return_moment() noexcept;
  [[nodiscard]] result<> add_home_snapshot(home_snapshot& s);
  std::array<page_snapshot*, 1 + max_long_reads> page_snapshots_{};  // null: a free place
  std::atomic<unsigned> page_snapshot_count_{0};
  std::atomic<unsigned> long_reads_{0};
  statistics long_read_counts_;  // of those that have ended; under registry_
  bool closed_ = false;
  std::function<void()> before_close_;
  std::unique_ptr<reader_server> readers_;
  std::unique_ptr<reader_session> reading_;  // null: the pool is open for writing
  std::mutex durable_callbacks_mutex_;
  std::multimap<std::uint64_t, std::function<void(result<>)>> durable_callbacks_;  // by TxID
};

inline thread_context* runtime::enter() noexcept {
  if (last_registration.id != id_ || state_->poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return nullptr;
  thread_context& v = *last_registration.context;
  STELE_ASSERT(is_between_transactions(v));
  STELE_ASSERT(v.tx == nullptr || v.tx->log() < log_slots_.size());
  v.in_transaction.announce(true);
  const bool owns = v.tx != nullptr && log_slots_[v.tx->log()].owner.look() == &v;
  const thread_context* const other = biased_.look();
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
