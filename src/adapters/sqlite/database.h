// One SQLite database of an open pool, shared by all connections of this process.
//
// Multiversion: readers and the writer do not wait for each other (docs/protocol/sqlite.md). The
// stamp of a block is the version since which home has its bytes. Readers of an earlier version
// read the block from kept_blocks, the version store; so do all readers of a block that a deferred
// commit has changed, until the commit is durable and home.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "extents.h"
#include "kept.h"
#include "open_pool.h"
#include "stores.h"
#include "versions.h"

namespace stele::sqlite {

class database {
 public:
  using snapshot = versions::snapshot;

  database(open_pool& pool, stored_database& stored);
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  open_pool& pool() const noexcept { return pool_; }
  // A connection registers before it reads. This and the functions below are thread-safe.
  void add(snapshot& s);
  void remove(snapshot& s) noexcept;

  // Sets the snapshot, which only the caller uses, to the newest version.
  void begin_read(snapshot& s) const noexcept { versions_.begin_read(s); }
  void end_read(snapshot& s) const noexcept { versions_.end_read(s); }
  // Copies bytes below the snapshot's size as of its version.
  void read(const snapshot& s, std::uint64_t at, std::span<std::byte> to) const noexcept;

  // Copies bytes of a block that the writer's transaction has stored before its commit. For the
  // writer only.
  void read_early(std::uint64_t number, std::span<std::byte> to, std::uint64_t from) const noexcept;

  // One connection at a time writes. False: another connection is the writer.
  bool lock_writer() noexcept { return !writer_.exchange(true, std::memory_order_acquire); }
  void unlock_writer() noexcept { writer_.store(false, std::memory_order_release); }
  bool has_writer() const noexcept { return writer_.load(std::memory_order_relaxed); }
  // The changes of all published versions, and perhaps of the next one.
  const recent_changes& changes() const noexcept { return versions_.changes(); }
  // Whether no commit has changed the database since this snapshot.
  bool is_newest(const snapshot& s) const noexcept { return versions_.is_newest(s); }

 private:
  friend class open_pool;
  static constexpr std::uint64_t not_home = ~std::uint64_t{0};  // stamp of a deferred block
  struct deferral {
    std::uint64_t number;
    std::unique_ptr<kept_blocks::block> bytes,
        home;  // home: null if the block is deferred already
  };
  struct flushed_block {
    std::uint64_t number, from;
    const std::byte* bytes;
  };

  [[nodiscard]] result<> reserve(std::uint64_t bytes);
  void find_changes(pending_writes& writes);
  void keep_changed();
  void raise_stamps() noexcept;
  std::uint64_t find_appended(pending_writes& writes);
  void store(const stores& s, std::uint64_t size);
  void end_commit(std::uint64_t size, bool stored) noexcept;
  void drop_unread() noexcept;
  void give_back_extents() noexcept;
  // Deferred commits.
  [[nodiscard]] bool may_defer(pending_writes& writes);
  void prepare_deferral(pending_writes& writes);
  void defer(std::uint64_t size) noexcept;
  [[nodiscard]] bool prepare_flush();
  void begin_flush() noexcept;
  void find_flushed() noexcept;
  void end_flush(bool stored) noexcept;

  static constexpr std::size_t most_deferred = 1024;  // blocks
  // Read by every read; changed by no commit.
  open_pool& pool_;
  stored_database& stored_;
  home_extents extents_;
  versions versions_;  // read by every read transaction, changed by each commit
  // Changed by the writer more often.
  alignas(64) std::atomic<bool> writer_{false};
  kept_blocks kept_;
  // Guarded by the pool's mutex of versions; flushed_ and flush_ by that of updates.
  std::uint64_t home_size_;  // as stored
  stores stores_;
  std::vector<std::uint64_t> numbers_;   // of the blocks that a commit changes
  std::vector<deferral> deferring_;      // blocks that a commit defers
  std::vector<std::uint64_t> deferred_;  // numbers of the blocks that are not home
  std::vector<flushed_block> flushed_;   // blocks that a flush stores home
  stores flush_;
  snapshot flusher_;
};

}  // namespace stele::sqlite
