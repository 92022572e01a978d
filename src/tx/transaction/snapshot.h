// The snapshot of a transaction under the policy stm: the committed state that its loads see, the
// locks of the lines that it has read, and the locks that it holds.
//
// A time-based software transactional memory after Felber, Fetzer and Riegel, "Dynamic Performance
// Tuning of Word-Based Software Transactional Memory" (2008), with the lazy snapshot algorithm of
// Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm with Eager Validation" (2006). The clock's
// values are the TxIDs; a lock covers one line.
//
// Invariants: all values that loads return belong to one state, of some TxID from the newest value
// read to time(). A lock is acquired only if its version is at most time(), so an own lock needs no
// validation. A transaction with unrecorded reads cannot extend its snapshot.
//
// Used by one thread, except for the locks and the clock. In other policies, and in a transaction
// of stm that runs alone, in_force() is false and nothing else is called but lock_alone, release
// and clear.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <media/cpu.h>
#include <stele/detail/access.h>
#include <stele/pool.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace stele::detail {

inline constexpr unsigned spin_limit = 128;  // loads of a held lock before the attempt ends

// A line lock of the stm. Free: version << 1. Held: owner << 1 | 1, with the owner's log index.
using line_lock = std::atomic<std::uint64_t>;

// How many a pool of this size has.
constexpr std::uint64_t line_lock_count(std::uint64_t pool_bytes) noexcept {
  return std::clamp<std::uint64_t>(std::bit_ceil(pool_bytes / line_size), 64, 1u << 20);
}

// What the snapshots of a pool share.
struct lock_table {
  line_lock* locks = nullptr;  // mask + 1 of them; null: transactions take no locks
  std::uint64_t mask = 0;
  const std::atomic<std::uint64_t>* clock = nullptr;
  bool guards_reads = true;  // transactions that only read look at the locks too
  bool shared = false;       // other processes look at the locks
};

class snapshot {
 public:
  // A lock as it was when its line was read, or before it was acquired.
  struct entry {
    line_lock* lock;
    std::uint64_t version;
  };

  snapshot(const lock_table& t, unsigned log) noexcept
      : own_lock_(std::uint64_t{log} << 1 | 1), in_force_(t.locks != nullptr) {
    use(t);
  }

  bool has_locks() const noexcept { return all_locks_ != nullptr; }
  // lock_table::guards_reads
  bool guards_reads() const noexcept { return guards_reads_; }
  // From the next attempt on.
  void use(const lock_table& t) noexcept {
    STELE_ASSERT(t.locks == nullptr || (t.clock != nullptr && std::has_single_bit(t.mask + 1)));
    all_locks_ = t.locks;
    mask_ = t.mask;
    clock_ = t.clock;
    guards_reads_ = t.guards_reads;
    is_shared_ = t.shared;
  }
  // Loads and stores of the running attempt take locks.
  bool in_force() const noexcept { return in_force_; }
  // This attempt runs alone, but other processes read: it takes locks for them, by lock_alone.
  bool locks_for_others() const noexcept { return is_shared_ && !in_force_; }
  std::uint64_t time() const noexcept { return time_; }

  // A new attempt. Without `records`, loads leave no entries: a reader then restarts instead of
  // extending. `fast`: try_copy may be used; the caller stores nothing and has no overlay.
  void begin(bool records, bool fast) noexcept {
    STELE_ASSERT(all_locks_ != nullptr && reads_.empty() && locks_.empty());
    in_force_ = true;
    has_unrecorded_reads_ = false;
    records_ = records;
    fast_ = fast && !records;
  }
  // A new attempt beside which no other transaction runs: it needs no locks.
  void begin_alone() noexcept {
    if (!in_force_) return;
    in_force_ = has_unrecorded_reads_ = fast_ = false;
  }
  void take() noexcept { time_ = clock_->load(std::memory_order_acquire); }

  // Runs `read`, which loads bytes of the line of `offset`. Once, which mostly suffices: false if
  // what it read may not belong to the snapshot; then read_consistently() runs it until it does, or
  // throws conflict. (try_read and try_copy: tx/fast_paths.h.)
  template <class Read>
  bool try_read(std::uint64_t offset, Read&& read);
  template <class Read>
  void read_consistently(std::uint64_t offset, Read&& read);
  // Copies a range of home. False: a line is locked or newer than the snapshot, or this attempt or
  // range needs the slow path.
  bool try_copy(const std::byte* home, std::uint64_t offset, std::byte* to,
                std::size_t size) noexcept;

  void prefetch_lock(std::uint64_t offset) const noexcept {
    if (in_force()) __builtin_prefetch(&lock_of(offset));
  }
  // Locks a line until release. Throws conflict.
  void acquire(std::uint64_t line);
  // Tries once, which mostly suffices. False: acquire() must do it.
  bool try_acquire(std::uint64_t line) noexcept;
  // As acquire, where no other thread takes locks: a load and a store. A release fence must follow
  // before the first store to a line. Throws std::bad_alloc.
  void lock_alone(std::uint64_t line);
  // Moves the snapshot to now. Throws conflict if a value that was read has changed, or if reads
  // were not recorded.
  void extend();
  // Whether every value that was read is still current. Locks of this transaction count as valid.
  bool valid() const noexcept;

  bool holds_locks() const noexcept { return !locks_.empty(); }
  std::size_t held_locks() const noexcept { return locks_.size(); }
  // The lines were stored by the commit `txid`.
  void release(std::uint64_t txid) const noexcept {
    STELE_ASSERT_WHOLE(is_newest(txid));
    for (const entry& l : locks_) l.lock->store(txid << 1, std::memory_order_release);
  }
  // The lines are as they were.
  void release_unchanged() const noexcept {
    for (const entry& l : locks_) l.lock->store(l.version, std::memory_order_release);
  }
  // From here on release_unchanged() gives the locks this version: other threads may have seen
  // stores that were rolled back.
  void age_locks(std::uint64_t txid) noexcept {
    STELE_ASSERT_WHOLE(is_newest(txid));
    for (entry& l : locks_) l.version = txid << 1;
  }
  // Moves the locks to `to`, which has room for them; they stay held.
  void hand_over_locks(std::vector<entry>& to) noexcept {
    to.insert(to.end(), locks_.begin(), locks_.end());
    locks_.clear();
  }
  // Forgets what was read and which locks were held. They have been released or handed over.
  void clear() noexcept {
    if (!reads_.empty()) reads_.clear();
    if (!locks_.empty()) locks_.clear();
  }

 private:
  // For assertions: no lock had a newer version when it was acquired.
  [[maybe_unused]] bool is_newest(std::uint64_t txid) const noexcept {
    return std::ranges::all_of(
        locks_, [txid](const entry& l) { return (l.version & 1) == 0 && l.version >> 1 <= txid; });
  }
  [[noreturn]] static void conflict();
  line_lock& lock_of(std::uint64_t line) const noexcept {
    return all_locks_[(line / line_size) & mask_];
  }

  line_lock* all_locks_;  // a line's number modulo the table's size is its lock's index
  std::uint64_t mask_;
  const std::uint64_t own_lock_;
  const std::atomic<std::uint64_t>* clock_;
  bool in_force_, guards_reads_, is_shared_;
  std::uint64_t time_ = 0;
  bool records_ = false, fast_ = false, has_unrecorded_reads_ = false;
  std::vector<entry> reads_, locks_;
};

template <class Read>
inline void snapshot::read_consistently(std::uint64_t offset, Read&& read) {
  STELE_ASSERT(all_locks_ != nullptr && clock_ != nullptr);
  line_lock& lock = lock_of(offset);
  for (unsigned tries = 0; tries < spin_limit; ++tries) {
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    if ((seen & 1) != 0) {
      if (seen == own_lock_) return read();
      media::cpu::relax();
      continue;
    }
    read();
    if (lock.load(std::memory_order_acquire) != seen) continue;
    if (seen >> 1 > time_) {
      extend();
      continue;
    }
    if (records_)
      reads_.push_back({&lock, seen});
    else
      has_unrecorded_reads_ = true;
    return;
  }
  conflict();
}

}  // namespace stele::detail
