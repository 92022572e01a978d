// A pool in use: its state, engine, threads and the shared parts of the concurrency policies.
//
// A thread that runs its first transaction on a pool becomes a visitor and owns one of the logs until it ends, or
// until another thread finds all logs taken and takes over one whose owner is between transactions. The owner notices at its
// next begin. That check costs no locked instruction: the taker pays with membarrier(2).
#pragma once

#include <base/epochs.h>
#include <media/tape.h>
#include <stele/pool.h>
#include <tx/engine.h>
#include <tx/page_snapshot.h>
#include <tx/transaction.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace stele::detail {

// One thread's stay at one pool.
struct alignas(64) visitor {  // its thread stores to it, each transaction
  std::atomic<bool> inside{false};          // between begin and end of a transaction
  std::atomic<bool> reading{false};         // single_writer: a reader that home stores must wait for
  transaction* tx = nullptr;                // of the log that this thread owned last
  bool retrying = false;                    // between two attempts of one body
  bool holds_writer = false;                // the writer lock
  bool holds_unlucky = false;               // the lock of transactions that keep losing
};

struct visit {
  std::uint64_t id;  // of the runtime
  visitor* who;
};
extern constinit thread_local visit last_visit;  // of this thread

class runtime {
 public:
  runtime(std::unique_ptr<pool_state> s, std::unique_ptr<engine> e, const pool_options& options, std::string mechanism, std::string durability);
  ~runtime();

  pool_state& state() noexcept { return *state_; }
  const pool_state& state() const noexcept { return *state_; }
  engine& mechanism() noexcept { return *engine_; }
  const std::string& mechanism_name() const noexcept { return mechanism_name_; }
  concurrency policy() const noexcept { return options_.policy; }
  // Stores go home as they are made: with nothing to protect and one writer, a write set would be waste.
  bool in_place() const noexcept { return in_place_; }
  bool may_execute_in_log() const noexcept { return may_execute_in_log_; }
  bool defers_ordered() const noexcept { return defers_ordered_; }
  std::byte* base() const noexcept { return state_->file.address(); }
  std::size_t size() const noexcept { return state_->file.header().span(); }
  std::uint64_t heap_begin() const noexcept { return state_->file.header().chunks_offset; }
  // Home is not where its addresses are: every load asks the transaction.
  bool home_is_apart() const noexcept { return home_is_apart_; }
  line_lock* locks() const noexcept { return locks_.get(); }
  std::uint64_t lock_mask() const noexcept { return lock_mask_; }
  const std::string& durability_in_force() const noexcept { return durability_; }

  // The calling thread's visitor, inside from now on and owning a log. Errors: poisoned.
  [[nodiscard]] result<visitor*> enter_anew();
  visitor* enter() noexcept;  // null: enter_anew()
  void leave(visitor& v) noexcept { v.inside.store(false, std::memory_order_release); }
  void forget(visitor& v) noexcept;  // its thread ends

  void lock_writer(visitor& v) {
    if (policy() == concurrency::single_writer && biased_.load(std::memory_order_relaxed) != &v) lock_writer_now(v);
  }
  void unlock_writer(visitor& v) noexcept;  // v.holds_writer
  void begin_read(visitor& v);
  void close_gate();
  void open_gate() noexcept;
  // Before the first ordered commit of the session: from here on every commit draws its TxID in order.
  void first_order(unsigned log);
  // Ordered commits of other threads are home when this returns, for policies that read home without asking.
  void see_ordered(const visitor& v, bool writes) {
    if (policy() != concurrency::stm && state_->unsettled.load(std::memory_order_acquire) != 0) [[unlikely]]
      see_ordered_now(v, writes);
  }
  // Settles, and gives back the locks of threads that are between transactions; theirs who run go when their next one begins.
  void retire_idle(const visitor& v) noexcept;
  // While it lives no transaction runs or begins, and home has every commit. A running transaction is waited for; not in one. Takes no memory.
  class pause {
   public:
    explicit pause(runtime& r) noexcept;
    ~pause();
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;

   private:
    void stop() noexcept;
    void wait() noexcept;
    bool is_inside(const visitor* v) const noexcept;
    runtime& runtime_;
  };

  // Long work on the whole pool, one at a time: backup, growth, check.
  std::mutex& upkeep() noexcept { return upkeep_; }
  // Home as it was, for a backup that runs; null: none does. Set while no transaction runs.
  void keep(page_snapshot* snapshot) noexcept { snapshot_.store(snapshot, std::memory_order_release); }
  page_snapshot* snapshot() const noexcept { return snapshot_.load(std::memory_order_relaxed); }

  // Takes the free blocks that threads between transactions keep at hand; those threads take a log anew.
  void recall_idle(const visitor& v) noexcept;
  // Serialises transactions that keep losing.
  std::mutex& unlucky() noexcept { return unlucky_; }

  // Errors: poisoned; corrupt, when the file is shorter than the pool, which poisons it.
  [[nodiscard]] result<> expect_sound();
  [[nodiscard]] result<> close();
  void tell_when_durable(std::uint64_t txid, std::function<void(result<>)> told);
  [[nodiscard]] result<void*> root(std::size_t size);
  std::uint64_t root_offset() const noexcept;  // as home has it; while no transaction runs
  // The tape is finished when the pool has been closed.
  void keep(std::unique_ptr<media::tape_writer> tape);
  pool_counters counters() const noexcept;
  pool_space space() const;
  std::uint64_t newest_commit() const noexcept;  // TxID of the newest commit that has returned

 private:
  struct alignas(64) place {
    std::unique_ptr<transaction> tx;
    std::atomic<visitor*> owner{nullptr};
    visitor* paused = nullptr;  // a pause's: whom it took the log from
    // Written by the owner alone; readers may be behind.
    std::atomic<std::uint64_t> commits{0}, aborts{0}, reads{0}, newest{0}, stored_in_place{0};
  };

  [[nodiscard]] result<void*> migrate_root(std::uint64_t* header, std::uint64_t held_version, std::size_t size);
  void tell_durable(std::uint64_t through, const result<>& how) noexcept;
  [[nodiscard]] result<> close_engine();
  void lock_writer_now(visitor& v);
  void see_ordered_now(const visitor& v, bool writes);
  [[nodiscard]] result<transaction*> take_log(visitor& v);
  transaction* settle(visitor& v, place& p);
  const visitor* user_of(const place& p) const noexcept;
  void end_bias(const visitor& v);
  void offer_bias(visitor& v) noexcept;
  friend class transaction;

  std::unique_ptr<media::tape_writer> tape_;
  std::unique_ptr<pool_state> state_;
  std::unique_ptr<engine> engine_;
  pool_options options_;
  std::string mechanism_name_;
  std::string durability_;
  bool home_is_apart_;
  bool in_place_;
  bool may_execute_in_log_;
  bool defers_ordered_;
  std::unique_ptr<line_lock[]> locks_;
  std::uint64_t lock_mask_ = 0;
  std::vector<place> places_;
  std::uint64_t id_;  // of this runtime; never used again

  std::mutex registry_;  // of places' owners and visitors
  std::condition_variable log_left_;
  std::mutex visitors_mutex_;  // after registry_; either of the two suffices to read visitors_
  std::vector<std::unique_ptr<visitor>> visitors_;
  // single_writer: the visitor that takes no locks, since it is the only one about; others end that when they begin. The check
  // is a load; the other side pays with membarrier.
  std::atomic<visitor*> biased_{nullptr};
  std::mutex bias_mutex_;
  visitor nobody_;
  const visitor* last_writer_ = nullptr;  // under writer_, like the streak
  unsigned writer_streak_ = 0;
  std::mutex writer_;
  std::atomic<bool> writer_locked_{false};
  std::atomic<bool> gate_closed_{false};
  std::mutex unlucky_;
  std::mutex upkeep_;
  bool paused_ = false;  // under registry_
  std::atomic<page_snapshot*> snapshot_{nullptr};
  bool closed_ = false;
  std::mutex awaiting_mutex_;
  std::multimap<std::uint64_t, std::function<void(result<>)>> awaiting_;  // by TxID
};

inline visitor* runtime::enter() noexcept {
  if (last_visit.id != id_ || state_->poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return nullptr;
  visitor& v = *last_visit.who;
  v.inside.store(true, std::memory_order_relaxed);
  base::light_fence();
  const bool owns = v.tx != nullptr && places_[v.tx->log()].owner.load(std::memory_order_acquire) == &v;
  const visitor* const other = biased_.load(std::memory_order_acquire);
  if (owns && (other == nullptr || other == &v)) [[likely]]
    return &v;
  v.inside.store(false, std::memory_order_release);
  return nullptr;
}

}  // namespace stele::detail
