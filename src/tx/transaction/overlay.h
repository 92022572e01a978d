// The overlay of a log: the values of its deferred commits, over which its transactions read, and
// the line locks and heap changes of these commits.
//
// A deferred commit is visible to no other thread before it is stored home, so its lines stay
// locked. Order: defer() by the log's owner, for each such commit; set_stored() by whoever has
// stored the overlay home, under the engine's lock that defer() was called under; release() by the
// owner between transactions, or by a thread that has taken the log from an idle owner. Only
// exists() and is_deferred() are thread-safe beside these.
#pragma once

#include <base/assert.h>
#include <pool/heap.h>
#include <tx/transaction/snapshot.h>
#include <tx/write_set.h>

namespace stele::detail {

class overlay {
 public:
  // `count` counts the logs that have an overlay.
  explicit overlay(std::atomic<unsigned>& count) : count_(count) {}  // allocates memory

  bool empty() const noexcept { return lines_.empty(); }
  std::span<const written_line> lines() const noexcept { return lines_.lines(); }
  const written_line* find(std::uint64_t line) const noexcept { return lines_.find(line); }
  // Has the bit of every line.
  std::uint64_t filter() const noexcept { return filter_; }
  // From the first defer() to release().
  bool exists() const noexcept { return exists_.load(std::memory_order_acquire); }
  bool is_stored() const noexcept { return stored_.load(std::memory_order_acquire); }
  bool is_deferred() const noexcept { return exists() && !is_stored(); }

  // The word at `offset`, with the bytes of the overlay in place of those of `home`, home's word.
  std::uint64_t read_through(std::uint64_t offset, std::uint64_t home) const noexcept {
    STELE_ASSERT(offset % 8 == 0);
    if (lines_.empty()) [[likely]]
      return home;
    const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
    const written_line* before = lines_.find(line);
    if (before == nullptr) return home;
    const unsigned word = static_cast<unsigned>(offset - line) / 8;
    const std::uint64_t bits = expand_mask(before->word_mask(word));
    return (before->words[word] & bits) | (home & ~bits);
  }

  // After it, defer() of such a commit allocates no memory.
  void reserve(const write_set& writes, const snapshot& locked,
               const storage::heap::changes& changes) {
    lines_.reserve(writes.lines().size());
    base::reserve_more(locks_, locked.held_locks());
    changes_.reserve(changes);
  }
  // Takes over the values and locks of the commit `txid`. The caller adds its heap changes to
  // changes().
  void defer(std::uint64_t txid, const write_set& writes, std::uint64_t filter,
             snapshot& locked) noexcept;
  storage::heap::changes& changes() noexcept { return changes_; }
  // The transaction `txid` of this log has stored to lines whose locks are here: their version must
  // not be older.
  void raise_version(std::uint64_t txid) noexcept {
    STELE_ASSERT(txid >= txid_);
    txid_ = txid;
  }
  void set_stored() noexcept { stored_.store(true, std::memory_order_release); }
  // Precondition: the overlay is stored home. Releases the locks, then calls free(changes()), which
  // empties it. If another thread has released the overlay, nothing happens.
  template <class Free>
  void release(Free&& free) noexcept {
    if (!exists()) return;
    STELE_ASSERT(is_stored() && !lines_.empty());
    for (const snapshot::entry& l : locks_) l.lock->store(txid_ << 1, std::memory_order_release);
    locks_.clear();
    lines_.clear();
    filter_ = 0;
    free(changes_);
    STELE_ASSERT(changes_.empty() && count_.load(std::memory_order_relaxed) != 0);
    exists_.store(false, std::memory_order_release);
    count_.fetch_sub(1, std::memory_order_relaxed);
    stored_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<unsigned>& count_;
  write_set lines_;
  std::vector<snapshot::entry> locks_;
  storage::heap::changes changes_;
  std::uint64_t filter_ = 0, txid_ = 0;
  std::atomic<bool> stored_{false}, exists_{false};
};

}  // namespace stele::detail
