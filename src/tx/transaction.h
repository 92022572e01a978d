// One transaction: what it has read, what it will write, what it has allocated; and the rules of
// its policy.
//
// stm: a time-based software transactional memory after Felber, Fetzer and Riegel, "Dynamic
// Performance Tuning of Word-Based Software Transactional Memory" (2008), with the lazy snapshot
// algorithm of Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (2006):
// encounter-time locking, write-back, a shared clock whose values are the TxIDs. Loads are word by
// word; a lock covers one line. Invariants: a value that a load returns belongs to one snapshot
// [.., snapshot_] of committed states, so the body never sees a torn state; a line in the write set
// is locked by its transaction (heap states apart: the heap's reservation is their lock).
// single_writer: writers hold one lock, readers run beside the writer's body and keep its home
// stores waiting. external: no locks at all.
#pragma once

#include <format/log_block.h>
#include <pool/heap.h>
#include <stele/pool.h>
#include <tx/volatile_undo.h>
#include <tx/write_set.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace stele::detail {

class page_snapshot;
class runtime;
struct thread_context;

commit_status fail_attempt(error why);  // keeps it for last_error(); commit_status::failed

// A lock of the stm: version << 1, or owner << 1 | 1 with owner the log index.
using line_lock = std::atomic<std::uint64_t>;

class alignas(64) transaction final : public storage::heap::writer {
 public:
  transaction(runtime& r, unsigned log);
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  unsigned log() const noexcept { return log_; }
  write_set& writes() noexcept { return writes_; }
  std::span<const written_line> lines() const noexcept { return writes_.lines(); }
  bool ordered() const noexcept { return ordered_; }
  bool ordered_requested() const noexcept {
    return ordered_requested_;
  }  // ordered, whatever the engine makes of it
  const storage::heap::changes& allocations() const noexcept { return changes_; }
  storage::home_map::cache& map_cache() noexcept { return map_cache_; }
  // Its stores are in its log: words of the write set are places of blocks there.
  bool in_log() const noexcept { return store_target_ == store_target::log; }
  std::uint64_t value(const written_line& line, unsigned word) const noexcept {
    return in_log() ? format::word_of(*reinterpret_cast<const format::log_block*>(line.words[word]))
                    : line.words[word];
  }

  void begin(thread_context& v, bool writes, bool ordered);
  commit_status commit();
  // What a commit of stores that are not home yet comes to; the engine calls it with itself
  // (engine::run_commit).
  template <class Engine>
  commit_status commit_by(Engine& e);
  void rollback() noexcept;

  // Called by the mechanism before it stores to a range of the heap that is not in the write set: a
  // backup that runs copies it first.
  void before_store(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  // Called by the mechanism when the log is durable and home is to change: keeps readers out until
  // the end.
  void begin_home_stores();

  // Ordered commits that are not stored home yet: an overlay of their values, over which this log's
  // transactions run, and their locks. defer() adds the running one, as TxID; the engine settles
  // between begin_ and end_overlay_store (which keep single_writer's readers out) under the lock
  // that it defers under; the log's owner gives the locks back, in release_overlay().
  void reserve_overlay();  // before: then defer() takes no memory
  void defer(std::uint64_t txid) noexcept;
  std::span<const written_line> overlay_lines() const noexcept { return overlay_.lines(); }
  std::uint64_t read_through_overlay(std::uint64_t offset, std::uint64_t home)
      const noexcept;  // the word at `offset`, of which `home` is home's
  void begin_overlay_store();
  void end_overlay_store() noexcept;
  bool has_overlay() const noexcept {
    return has_overlay_.load(std::memory_order_acquire);
  }  // any thread's to ask
  bool has_deferred() const noexcept {
    return has_overlay() && !overlay_stored_.load(std::memory_order_acquire);
  }
  void release_overlay() noexcept;
  // The engine calls it in its draw(). False: what was read is not current any more.
  bool assign_txid(std::uint64_t& txid);
  // Its TxID was drawn in order: while there were ordered commits. Then, that of the ordered commit
  // before it.
  bool in_order() const noexcept { return in_order_; }
  std::uint64_t previous_ordered() const noexcept { return previous_ordered_; }
  // The engine calls it when the ordered commit is pending, or durable: later ones may draw their
  // TxIDs.
  void release_txid_lock() noexcept {
    if (txid_lock_.owns_lock()) txid_lock_.unlock();
  }

  std::uint64_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint64_t bits);
  void store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);  // within one word
  // Any range, for who only reads: false when some line is locked or newer than the snapshot, or
  // the transaction is not so simple.
  bool try_fast_read(std::uint64_t offset, std::byte* to, std::size_t size) noexcept;
  // Within one line.
  void load_part(std::uint64_t offset, std::byte* to, std::size_t size);
  void store_part(std::uint64_t offset, const std::byte* from, std::size_t size);
  void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) override;
  std::uint64_t read_private(std::uint64_t offset, unsigned size) override;
  void claim(std::uint64_t offset, std::size_t size) override;

  std::uint64_t allocate(std::size_t size, std::size_t alignment);
  void deallocate(std::uint64_t offset);
  void grow_undo_buffer();

  // Ordinary memory in the transaction; see volatile_undo.h.
  void load_volatile(std::uintptr_t address, void* to, std::size_t size);
  void lock_volatile(std::uintptr_t address, std::size_t size);
  volatile_undo_log& volatile_undo() noexcept { return volatile_undo_; }
  // Moves the snapshot to now, or restarts; returns the snapshot.
  std::uint64_t revalidate();

  // Frees empty slabs as part of this transaction, as many as fit a log; how many chunks.
  std::size_t reclaim();

  unsigned attempts = 0;       // of the present body so far, the running one not counted
  bool wants_reclaim = false;  // an allocation did not fit; slabs may be empty
  bool reclaim_tried = false;  // that has been tried for the present body
  bool exceeds_log =
      false;  // the present body stores more than its log has room for: not to be executed there

 private:
  struct read_entry {
    line_lock* lock;
    std::uint64_t version;
  };

  storage::heap& heap() noexcept;
  line_lock& lock_of(std::uint64_t line) const noexcept {
    return all_locks_[(line / line_size) & lock_mask_];
  }
  std::uint64_t home_word(std::uint64_t offset) noexcept;
  std::uint64_t logged_word(std::uint64_t offset) noexcept;
  void copy_logged(std::uint64_t offset, std::byte* to, std::size_t size) noexcept;
  void copy_home(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size) noexcept;
  template <class Read>
  void read_consistently(std::uint64_t offset, Read&& read);
  std::uint64_t stm_load(std::uint64_t offset);
  std::uint64_t stm_load_slow(std::uint64_t offset);
  void stm_load_part(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size);
  void store_part_slow(std::uint64_t offset, const std::byte* from, std::size_t size);
  void acquire_lock(std::uint64_t line);
  void extend_snapshot();
  bool reads_valid() const noexcept;
  [[noreturn]] void conflict();
  written_line& line_for_store(std::uint64_t line);
  bool assign_txid_announced(std::uint64_t& txid);
  bool assign_txid_in_order(std::uint64_t& txid);
  std::uint64_t merge_word(const written_line& line, unsigned word,
                           std::uint64_t below) const noexcept;
  void store_in_log(written_line& line, std::uint64_t offset, std::uint64_t bits,
                    std::uint8_t mask);
  void store_word_slow(std::uint64_t offset, std::uint64_t bits);
  void store_slow(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);
  static void snapshot_pages(page_snapshot& snapshot, const write_set& stored) noexcept;
  commit_status commit_empty() noexcept;
  commit_status commit_volatile() noexcept;
  void roll_back_volatile() noexcept;
  commit_status commit_in_place() noexcept;
  commit_status roll_back_with_error(error why);
  commit_status fail_in_doubt() const noexcept;
  commit_status fail_poisoned();
  void store_in_place(std::uint64_t offset, const void* bytes, std::size_t size);
  void undo_in_place() noexcept;
  void clear() noexcept;

  runtime& runtime_;
  const unsigned log_;
  std::byte* const home_;       // the byte at pool offset 0, seen from home's
  line_lock* const all_locks_;  // stm's, one for each line modulo their number
  const std::uint64_t lock_mask_;
  const bool stm_;
  storage::log_space* const space_;  // of a log-structured pool
  storage::home_map::cache map_cache_;
  enum class store_target : std::uint8_t {
    read_only,  // it only reads
    write_set,
    log,
    home,  // mechanism none; `in_place_undo_` undoes them
  };
  store_target store_target_ = store_target::read_only;
  std::uint64_t filter_ = 0;  // has the bit of every line in the write set
  bool ordered_ = false, ordered_requested_ = false;
  bool record_reads_ = false;
  bool fast_reads_ =
      false;  // a reader under stm that keeps no account of its loads and has nothing of its own
  bool blocks_readers_ = false;
  thread_context* context_ = nullptr;
  access_buffer* const access_buffer_;  // null: nobody wants to know
  std::uint64_t snapshot_ = 0;
  std::vector<undo_entry> in_place_undo_;
  write_set writes_;
  std::vector<read_entry> reads_;
  std::vector<read_entry> locks_;
  volatile_undo_log volatile_undo_;
  bool has_unrecorded_reads_ = false;
  storage::heap::changes changes_;
  write_set overlay_;
  std::vector<read_entry> overlay_locks_;
  storage::heap::changes overlay_changes_;
  bool in_order_ = false;
  std::unique_lock<std::mutex> txid_lock_;
  std::uint64_t overlay_filter_ = 0, overlay_txid_ = 0, previous_ordered_ = 0;
  std::atomic<bool> overlay_stored_{false}, has_overlay_{false};

 public:
  storage::heap::thread_cache cache;
};

}  // namespace stele::detail
