// One transaction: its read set, write set and allocations, and the rules of its concurrency
// policy.
//
// stm: a time-based software transactional memory after Felber, Fetzer and Riegel, "Dynamic
// Performance Tuning of Word-Based Software Transactional Memory" (2008), with the lazy snapshot
// algorithm of Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (2006):
// encounter-time locking, write-back, a shared clock whose values are the TxIDs. Loads are word by
// word; a lock covers one line. Invariants: all values that loads return belong to one snapshot
// [.., snapshot_] of committed states, so the body never sees a torn state; a line in the write set
// is locked by its transaction (except for block states, which the heap's reservation protects).
// single_writer: writers hold one lock; readers run concurrently with the writer's body, and the
// writer waits for them before it stores home. external: no locks at all.
#pragma once

#include <format/log_block.h>
#include <pool/heap.h>
#include <stele/pool.h>
#include <tx/volatile_undo.h>
#include <tx/write_set.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

namespace stele::detail {

class access_buffer;
class page_snapshot;
class runtime;
struct thread_context;

commit_status fail_attempt(error why);  // saves it for last_error(); returns commit_status::failed

// A line lock of the stm. Free: version << 1. Held: owner << 1 | 1, with the owner's log index.
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
  // The caller asked for durability::ordered. ordered(): and the engine defers such commits.
  bool ordered_requested() const noexcept { return ordered_requested_; }
  const storage::heap::changes& allocations() const noexcept { return changes_; }
  storage::home_map::cache& map_cache() noexcept { return map_cache_; }
  // Its stores are in its log: the words of the write set are pointers to blocks there.
  bool in_log() const noexcept { return store_target_ == store_target::log; }
  std::uint64_t value(const written_line& line, unsigned word) const noexcept {
    return in_log() ? format::word_of(*reinterpret_cast<const format::log_block*>(line.words[word]))
                    : line.words[word];
  }

  void begin(thread_context& v, bool writes, bool ordered);
  commit_status commit();
  // The commit of a transaction whose stores are not home yet. engine::run_commit calls it with
  // itself.
  template <class Engine>
  commit_status commit_by(Engine& e);
  void rollback() noexcept;

  // Called by the mechanism before it stores to a heap range that is not in the write set, so that
  // a running backup copies the range first.
  void before_store(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  // Called by the mechanism when the log is durable, before the first store to home. single_writer:
  // keeps readers out until the transaction has ended.
  void begin_home_stores();

  // The overlay: the values of this log's deferred commits, over which the log's transactions read,
  // and the line locks of these commits. defer() adds the running transaction as commit `txid`. The
  // engine stores the overlay home between begin_overlay_store() and end_overlay_store(), which
  // keep readers of single_writer out, and holds the same lock as for defer(). Then the log's owner
  // releases the locks with release_overlay().
  void reserve_overlay();  // before defer(), which then allocates no memory
  void defer(std::uint64_t txid) noexcept;
  std::span<const written_line> overlay_lines() const noexcept { return overlay_.lines(); }
  // The word at `offset`, with the bytes of the overlay in place of those of `home`, home's word.
  std::uint64_t read_through_overlay(std::uint64_t offset, std::uint64_t home) const noexcept;
  void begin_overlay_store();
  void end_overlay_store() noexcept;
  // Thread-safe.
  bool has_overlay() const noexcept { return has_overlay_.load(std::memory_order_acquire); }
  bool has_deferred() const noexcept {
    return has_overlay() && !overlay_stored_.load(std::memory_order_acquire);
  }
  void release_overlay() noexcept;
  // Called by engine::assign_txid. False: a value that was read is not current any more.
  bool assign_txid(std::uint64_t& txid);
  // Whether the TxID was drawn in ordered mode. If so, previous_ordered() is the TxID of the
  // ordered commit before it.
  bool in_order() const noexcept { return in_order_; }
  std::uint64_t previous_ordered() const noexcept { return previous_ordered_; }
  // Called by the engine when the ordered commit is in its deferred batch, or is durable: from here
  // on later commits may draw their TxIDs.
  void release_txid_lock() noexcept {
    if (txid_lock_.owns_lock()) txid_lock_.unlock();
  }

  std::uint64_t load_word(std::uint64_t offset);
  void store_word(std::uint64_t offset, std::uint64_t bits);
  void store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask);  // within one word
  // Copies any range, for transactions with fast_reads_. False: a line is locked or newer than the
  // snapshot, or this transaction or range needs the slow path.
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

  // Access to volatile memory in the transaction; see volatile_undo.h.
  void load_volatile(std::uintptr_t address, void* to, std::size_t size);
  void lock_volatile(std::uintptr_t address, std::size_t size);
  volatile_undo_log& volatile_undo() noexcept { return volatile_undo_; }
  // Extends the snapshot to now and returns it. Throws restart if a value that was read has
  // changed.
  std::uint64_t revalidate();

  // Frees empty slabs in this transaction, as many as its log has room for. Returns the number of
  // chunks.
  std::size_t reclaim();

  // Called in a handler. The attempt cannot commit any more; the first exception says why.
  void doom() noexcept;

  unsigned attempts = 0;       // ended attempts of the current body
  bool wants_reclaim = false;  // an allocation did not fit; reclaiming empty slabs may help
  bool reclaim_tried = false;  // reclaim was tried for the current body
  // The current body stores more than its log has room for: it is not executed in the log.
  bool exceeds_log = false;

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
  commit_status commit_doomed();
  void store_in_place(std::uint64_t offset, const void* bytes, std::size_t size);
  void undo_in_place() noexcept;
  void clear() noexcept;

  runtime& runtime_;
  const unsigned log_;
  std::byte* const home_;       // home_ + offset is the address in home of a pool offset
  line_lock* const all_locks_;  // stm: the lock table; a line's number modulo its size is the index
  const std::uint64_t lock_mask_;
  const bool stm_;
  storage::log_space* const space_;  // of a log-structured pool
  storage::home_map::cache map_cache_;
  enum class store_target : std::uint8_t {
    read_only,  // stores are refused
    write_set,
    log,
    home,  // mechanism none; in_place_undo_ holds the old words
  };
  store_target store_target_ = store_target::read_only;
  // The first exception in a destructor: the attempt can only roll back.
  std::exception_ptr doomed_by_ = {};
  std::uint64_t filter_ = 0;  // has the bit of every line in the write set and the overlay
  bool ordered_ = false, ordered_requested_ = false;
  bool record_reads_ = false;
  bool fast_reads_ = false;  // stm: a reader that records no loads and has no overlay
  bool blocks_readers_ = false;
  thread_context* context_ = nullptr;
  access_buffer* const access_buffer_;  // null: the mechanism does not ask for loads
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
