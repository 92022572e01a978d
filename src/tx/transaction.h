// One transaction: its write set, and the parts that its execution mode uses, each a type of its
// own in transaction/.
//
//   mode                        parts
//   stm                         snapshot: locks of lines read and stored, one consistent state
//   single writer, external     none more; loads and stores take no locks
//   observed                    none more; stores go to the mechanism's store_observer
//   in place (mechanism none)   in_place_undo: stores go home at once
//   ordered                     overlay: values and locks of deferred commits; txid_order
//   atomic blocks of g++        volatile_undo_log: stores outside the pool
//
// Every mode has an allocation_set and statistics. Invariants: a line in the write set is locked by
// its transaction (stm; except for block states, which the heap's reservation protects).
// single_writer: writers hold one lock; readers run concurrently with the writer's body, and the
// writer waits for them before it stores home. external: no locks at all.
//
// What a field access executes is in fast_paths.h; begin and commit are in transaction_inl.h.
#pragma once

#include <base/assert.h>
#include <pool/heap.h>
#include <stele/pool.h>
#include <tx/home.h>
#include <tx/observers.h>
#include <tx/transaction/allocation_set.h>
#include <tx/transaction/in_place_undo.h>
#include <tx/transaction/overlay.h>
#include <tx/transaction/snapshot.h>
#include <tx/transaction/statistics.h>
#include <tx/transaction/txid_order.h>
#include <tx/transaction/volatile_undo.h>
#include <tx/write_set.h>

#include <cstdint>
#include <exception>

namespace stele::detail {

class page_snapshot;
class moment;
class long_read;
class runtime;
struct thread_context;

class alignas(64) transaction final : public storage::heap::writer {
 public:
  transaction(runtime& r, const lock_table& locks, unsigned log, statistics& counts);
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  unsigned log() const noexcept { return log_; }
  void use_locks(const lock_table& t) noexcept {  // between transactions
    STELE_ASSERT(!snapshot_.holds_locks());
    snapshot_.use(t);
  }
  // This transaction only reads, and sees the pool as of a moment; null: as of now.
  void set_moment(const moment* m) noexcept { moment_ = m; }
  write_set& writes() noexcept { return writes_; }
  std::span<const written_line> lines() const noexcept { return writes_.lines(); }
  bool ordered() const noexcept { return ordered_; }
  // The caller asked for durability::ordered. ordered(): and the engine defers such commits.
  bool ordered_requested() const noexcept { return ordered_requested_; }
  const storage::heap::changes& allocations() const noexcept { return allocations_.changes(); }
  // Its stores went to the mechanism's observer.
  bool observed() const noexcept { return store_target_ == store_target::observer; }
  std::uint64_t value(const written_line& line, unsigned word) const noexcept {
    return observed() ? observers_.stores->word(line, word) : line.words[word];
  }

  // Called by the mechanism in the commit of an observed transaction: the write set gets the words
  // that the observer makes.
  void take_observed_words() noexcept {
    STELE_ASSERT(observed() && observers_.stores != nullptr);
    for (written_line& line : writes_.lines())
      for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
        const auto word = static_cast<unsigned>(std::countr_zero(left));
        line.words[word] = observers_.stores->word(line, word);
      }
    store_target_ = store_target::write_set;
  }

  // A short begin for a durable update, if runtime::has_plain_updates(). False: begin() must do it.
  bool try_begin_update(thread_context& v, bool alone) noexcept;
  // The same for the first attempt of a read, if runtime::has_plain_reads().
  bool try_begin_read(thread_context& v, bool alone) noexcept;
  // alone: no other transaction runs on the pool before this one ends.
  void begin(thread_context& v, bool writes, bool ordered, bool alone);
  commit_status commit();
  bool only_reads() const noexcept { return store_target_ == store_target::read_only; }
  // A short commit, if only_reads(). False: commit() must do it.
  bool try_commit_read() noexcept;
  // The commit of a transaction whose stores are not home yet. The engine calls it with its
  // mechanism.
  template <class Mechanism>
  commit_status commit_by(Mechanism& m);
  void rollback() noexcept;
  // In a child of fork, of the transaction that its thread is in: each load and store is refused,
  // because it would be of memory that the parent changes.
  void leave_to_parent() noexcept;

  // Called by the mechanism before it stores to a heap range that is not in the write set, so that
  // a backup and long reads keep the range first.
  void before_store(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  // Called by the mechanism when the log is durable, before the first store to home. single_writer:
  // keeps readers out until the transaction has ended.
  void begin_home_stores();

  // The overlay (transaction/overlay.h). defer() adds the running transaction as commit `txid`. The
  // engine stores the overlay home between begin_overlay_store() and end_overlay_store(), which
  // keep readers of single_writer out, and holds the same lock as for defer(). Then the log's owner
  // releases the locks with release_overlay().
  void reserve_overlay();  // before defer(), which then allocates no memory
  void defer(std::uint64_t txid) noexcept;
  std::span<const written_line> overlay_lines() const noexcept { return overlay_.lines(); }
  std::uint64_t read_through_overlay(std::uint64_t offset, std::uint64_t home) const noexcept {
    return overlay_.read_through(offset, home);
  }
  void begin_overlay_store();
  void end_overlay_store() noexcept;
  // Thread-safe.
  bool has_overlay() const noexcept { return overlay_.exists(); }
  bool has_deferred() const noexcept { return overlay_.is_deferred(); }
  void release_overlay() noexcept;
  // Called by the mechanism, or commit_by(). False: a value that was read is not current any more.
  bool assign_txid(std::uint64_t& txid);
  // Whether the TxID was drawn in ordered mode. If so, previous_ordered() is the TxID of the
  // ordered commit before it.
  bool in_order() const noexcept { return order_.in_order(); }
  std::uint64_t previous_ordered() const noexcept { return order_.previous(); }
  // Called by the engine when the ordered commit is in its deferred batch, or is durable: from here
  // on later commits may draw their TxIDs.
  void release_txid_lock() noexcept { order_.release(); }

  void prefetch_lock(std::uint64_t offset) const noexcept { snapshot_.prefetch_lock(offset); }
  std::uint64_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint64_t bits);
  void store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);  // within one word
  // Copies any range, for readers of stm. False: load_part() must do it.
  bool try_fast_read(std::uint64_t offset, std::byte* to, std::size_t size) noexcept;
  // Within one line.
  void load_part(std::uint64_t offset, std::byte* to, std::size_t size);
  void store_part(std::uint64_t offset, const std::byte* from, std::size_t size);
  // Whole lines. from: null for zeroes, as for store_part.
  void store_lines(std::uint64_t offset, const std::byte* from, std::size_t size);
  void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) override;
  std::uint64_t read_private(std::uint64_t offset, unsigned size) override;
  void claim(std::uint64_t offset, std::size_t size) override;

  // Locks lines, also for other processes. Throws conflict; std::bad_alloc.
  void lock_range(std::uint64_t from, std::uint64_t to);

  std::uint64_t allocate(std::size_t size, std::size_t alignment);
  void deallocate(std::uint64_t offset);
  // Whether a block in use contains `offset`. Restarts if this snapshot is too old to tell.
  bool is_in_used_block(std::uint64_t offset);
  // Whether a block in use begins at `offset` and has at least `size` bytes.
  bool is_used_block(std::uint64_t offset, std::size_t size);
  void grow_undo_buffer();
  // Gives the log's free blocks to the other threads. No transaction runs on this log.
  void return_cached_blocks() noexcept { allocations_.return_cached_blocks(); }

  // Access to volatile memory in the transaction; see volatile_undo.h.
  void load_volatile(std::uintptr_t address, void* to, std::size_t size);
  void lock_volatile(std::uintptr_t address, std::size_t size);
  volatile_undo_log& volatile_undo() noexcept { return volatile_undo_; }
  // Extends the snapshot to now and returns it. Throws conflict if a value that was read has
  // changed.
  std::uint64_t revalidate();

  // Frees empty slabs in this transaction, as many as its log has room for. Returns the number of
  // chunks.
  std::size_t reclaim();

  // Called in a handler. The attempt cannot commit any more; the first exception says why.
  void doom() noexcept;

  bool wants_reclaim = false;  // an allocation did not fit; reclaiming empty slabs may help
  bool reclaim_tried = false;  // reclaim was tried for the current body
  // The current body stores more than its log has room for: it is not executed in the log.
  bool exceeds_log = false;

 private:
  template <class Home>
  std::uint64_t load_from(Home& home, std::uint64_t offset);
  // Not inline, so that a load in place saves no registers for them.
  std::uint64_t load_from(home_view& home, std::uint64_t offset);
  std::uint64_t load_from(foreign_home& home, std::uint64_t offset);
  template <class Home>
  void load_part_from(Home& home, std::uint64_t offset, std::byte* to, std::size_t size);
  void load_part_from(home_view& home, std::uint64_t offset, std::byte* to, std::size_t size);
  void load_part_from(foreign_home& home, std::uint64_t offset, std::byte* to, std::size_t size);
  template <class Home>
  void copy_from(Home& home, std::uint64_t offset, std::byte* to, std::size_t size) noexcept;
  std::uint64_t home_word(std::uint64_t offset) noexcept;
  std::uint64_t merged_word(const written_line* own, std::uint64_t offset) noexcept;
  std::uint64_t load_filtered_word(std::uint64_t offset);
  std::uint64_t load_word_slow(std::uint64_t offset);
  void load_part_observed(std::uint64_t offset, std::byte* to, std::size_t size);
  void load_part_slow(std::uint64_t offset, std::byte* to, std::size_t size);
  void load_own_part(const written_line& own, std::size_t skip, std::byte* to, std::size_t size);
  void copy_through_overlay(std::uint64_t offset, std::byte* to, std::size_t size) noexcept;
  void store_part_slow(std::uint64_t offset, const std::byte* from, std::size_t size);
  written_line& line_for_store(std::uint64_t line);
  void take_over(access& a) noexcept;
  bool needs_locks(bool alone) const noexcept;
  bool reads_need_locks(bool alone) const noexcept;
  bool assign_txid_announced(std::uint64_t& txid);
  bool assign_txid_in_order(std::uint64_t& txid);
  void store_word_slow(std::uint64_t offset, std::uint64_t bits);
  void store_slow(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);
  void store_in_place(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);
  void lock_for_others();
  void keep_pages() const noexcept;
  commit_status commit_empty();
  commit_status commit_volatile() noexcept;
  void roll_back_volatile() noexcept;
  commit_status commit_in_place() noexcept;
  error refused_change(const char* what) const;
  commit_status roll_back_with_error(error why);
  commit_status end_in_doubt(std::uint64_t txid);
  commit_status fail_in_doubt() const noexcept;
  commit_status fail_poisoned();
  commit_status commit_doomed();
  void clear() noexcept;
  bool is_new() const noexcept;

  runtime& runtime_;
  const unsigned log_;
  enum class store_target : std::uint8_t {
    read_only,  // stores are refused
    write_set,
    observer,
    home,  // mechanism none; in_place_ holds the old words
  };
  store_target store_target_ = store_target::read_only;
  bool ordered_ = false, ordered_requested_ = false;
  bool blocks_readers_ = false;
  const home_of_log home_;
  const moment* moment_ = nullptr;
  // Null: none. loads_now: of the running transaction.
  struct {
    load_observer* loads_now;
    load_observer* const loads;
    store_observer* const stores;
  } observers_;
  thread_context* context_ = nullptr;
  std::uint64_t filter_ = 0;  // has the bit of every line in the write set and the overlay
  // The first exception in a destructor: the attempt can only roll back.
  std::exception_ptr doomed_by_ = {};
  write_set writes_;
  snapshot snapshot_;
  allocation_set allocations_;
  txid_order order_;
  overlay overlay_;
  in_place_undo in_place_;
  volatile_undo_log volatile_undo_;
  statistics& counts_;
};

}  // namespace stele::detail
