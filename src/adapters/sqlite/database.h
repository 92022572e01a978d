// One SQLite database of an open pool, shared by all connections of this process; and its pool.
//
// Readers do not wait for the writer, nor the writer for them: docs/protocol/sqlite.md. Each block
// has a stamp, the version that home's bytes belong to at the earliest. A reader of an earlier
// version finds the block among the kept ones. So does every reader of a block that a deferred
// commit has changed, until the commit is durable and home.
#pragma once

#include "cache.h"
#include "kept.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <tx/background_thread.h>

namespace stele::sqlite {

class open_pool;

class database {
 public:
  // What a connection reads: the version at which its read transaction began.
  struct alignas(64) snapshot {
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    std::atomic<std::uint64_t> version{none};
    std::uint64_t size = 0;
    recent_changes::position changes = 0;  // after those of its version
  };

  database(open_pool& pool, stored_database& stored);
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  open_pool& pool() const noexcept { return pool_; }
  // Connections register before they read. Thread-safe, as all that follows.
  void add(snapshot& s);
  void remove(snapshot& s) noexcept;

  // Sets the snapshot to the newest version. It is the caller's alone.
  void begin_read(snapshot& s) noexcept;
  void end_read(snapshot& s) noexcept {
    s.version.store(snapshot::none, std::memory_order_release);
  }
  // Copies bytes below the snapshot's size as of its version.
  void read(const snapshot& s, std::uint64_t at, std::span<std::byte> to) const noexcept;

  // Copies bytes of a block that the writer's transaction has stored early. Only the writer's own.
  void read_early(std::uint64_t number, std::span<std::byte> to, std::uint64_t from) const noexcept;

  // One connection at a time writes. False: another one does.
  bool lock_writer() noexcept { return !writer_.exchange(true, std::memory_order_acquire); }
  void unlock_writer() noexcept { writer_.store(false, std::memory_order_release); }
  bool has_writer() const noexcept { return writer_.load(std::memory_order_relaxed); }
  // The changes of all versions that have been published, and perhaps of the next.
  const recent_changes& changes() const noexcept { return changes_; }
  // No commit has changed the database since.
  bool is_newest(const snapshot& s) const noexcept {
    return s.version.load(std::memory_order_relaxed) >= changed_at_.load(std::memory_order_acquire);
  }

 private:
  friend class open_pool;
  struct extent {
    const std::byte* bytes;
    std::unique_ptr<std::atomic<std::uint64_t>[]> stamps;
  };
  static constexpr std::uint64_t not_home = ~std::uint64_t{0};  // stamp of a deferred block
  struct change {
    std::uint64_t block;
    const std::byte* bytes;  // new content
    std::uint64_t lines;     // bit i: line i differs
    std::byte* home;
  };

  // What an update of the pool stores.
  struct stores {
    std::vector<change> changes;
    bool counts = false;       // they raise SQLite's own counter
    bool only_counts = false;  // and change no more of the first block
    void compare(std::uint64_t number, const std::byte* bytes, std::byte* home);
  };
  struct deferral {
    std::uint64_t number;
    std::unique_ptr<kept_blocks::block> bytes,
        home;  // home: null, if the block is deferred already
  };
  struct flushed_block {
    std::uint64_t number, from;
    const std::byte* bytes;
  };

  const extent& extent_of(std::uint64_t number) const noexcept {
    return *extents_[number].load(std::memory_order_acquire);
  }
  std::byte* home_of(std::uint64_t at) const noexcept;
  std::atomic<std::uint64_t>& stamp_of(std::uint64_t block) const noexcept;
  std::uint64_t newest_size() const noexcept;
  void note_extents();
  [[nodiscard]] bool has_extents_for(std::uint64_t bytes) const noexcept {
    return extents_for(bytes) <= known_extents_.size();
  }
  [[nodiscard]] result<> reserve(std::uint64_t bytes);
  void find_changes(pending_writes& writes);
  void keep_changed();
  void raise_stamps() noexcept;
  std::uint64_t find_appended(pending_writes& writes);
  void store_lines(const stores& s);
  void store(const stores& s, std::uint64_t size);
  void tell_changes(std::uint64_t size) noexcept;
  void publish(std::uint64_t size) noexcept;
  void drop_unread() noexcept;
  void give_back_extents() noexcept;
  std::uint64_t oldest_read() const noexcept;
  // Deferred commits.
  [[nodiscard]] bool may_defer(pending_writes& writes);
  void prepare_deferral(pending_writes& writes);
  void defer(std::uint64_t size) noexcept;
  [[nodiscard]] bool prepare_flush();
  void begin_flush() noexcept;
  void find_flushed() noexcept;
  void end_flush(bool stored) noexcept;

  static constexpr std::size_t most_deferred = 1024;  // blocks
  // What every read looks at, and no commit changes.
  open_pool& pool_;
  stored_database& stored_;
  std::unique_ptr<std::atomic<extent*>[], void (*)(std::atomic<extent*>*)> extents_;
  std::vector<std::unique_ptr<extent>> known_extents_;
  // What every read transaction looks at, and each commit changes: with the ends of changes_ one
  // line. What comes with the version v is in newest_[v % 2] while v is the newest version.
  struct published {
    std::atomic<std::uint64_t> size{0}, changes{0};
  };
  alignas(64) std::array<published, 2> newest_{};
  std::atomic<std::uint64_t> version_{1};
  std::atomic<std::uint64_t> changed_at_{1};  // version of the newest commit
  recent_changes changes_;
  // What the writer changes more often.
  alignas(64) std::atomic<bool> writer_{false};
  kept_blocks kept_;
  // The rest is under the pool's mutex of versions, but flushed_ and flush_ that of updates.
  std::vector<snapshot*> readers_;
  std::uint64_t home_size_;  // as stored
  stores stores_;
  std::vector<std::uint64_t> numbers_;   // of the blocks that a commit changes
  std::vector<deferral> deferring_;      // what a commit defers
  std::vector<std::uint64_t> deferred_;  // numbers of the blocks that are not home
  std::vector<flushed_block> flushed_;   // what a flush brings home
  stores flush_;
  snapshot flusher_;
};

// A pool that this process has open. All its databases commit together or one after another.
class open_pool {
 public:
  // Of options: as pool_options. Ordered commits wait in memory where a fence is a sync, and a
  // thread makes them durable soon; without a thread of the pool's own they are durable. Errors:
  // those of pool::open; unsupported, of mechanisms whose home is not in place.
  [[nodiscard]] static result<std::unique_ptr<open_pool>> open(const std::string& path,
                                                               pool_options options);
  // Over a pool that is open, for tools. Ordered commits wait until flush() where the pool's own
  // would.
  [[nodiscard]] static result<std::unique_ptr<open_pool>> over(stele::pool<stored_databases> pool);
  open_pool(const open_pool&) = delete;
  open_pool& operator=(const open_pool&) = delete;

  stele::pool<stored_databases>& content() noexcept { return pool_; }
  // The database of this name; made, if `make`. Errors: not_found; those of update(). Thread-safe,
  // as all that follows.
  [[nodiscard]] result<database*> find(const std::string& name, bool make);
  bool is_poisoned() const noexcept;
  // Why it can be used no more: full, if it had no space on its device.
  error poison_error(const std::string& path, const std::string& advice) const;
  // A thread of its own makes commits durable soon.
  bool has_thread() const noexcept { return has_thread_; }
  // As pool::check(); commits wait.
  [[nodiscard]] result<> check();
  // As pool::backup(), of all commits so far.
  [[nodiscard]] result<> backup(const std::string& path);
  // Makes the ordered commits so far durable. Errors: those of update(); then they wait on.
  [[nodiscard]] result<> flush();
  // In a thread of its own, deferred commits become durable soon. Called once.
  void start_flusher();
  // Flushes, unless the pool is poisoned, and closes it. No call is in progress. Throws
  // std::bad_alloc; then the pool is open, and close() may be called again.
  [[nodiscard]] result<> close();

  struct part {
    database* of;
    database::snapshot* reader;  // of the connection that writes; afterwards at the new version
    pending_writes* writes;
  };
  // Makes sure that a commit of these writes has room. Errors: full, io, poisoned.
  [[nodiscard]] result<> reserve(const part& p);
  // Stores the blocks that these writes append, which nobody else reads; they leave memory. Does
  // nothing if somebody may read them, or if it fails: then the commit says why.
  void store_early(const part& p);
  // Commits the writes of one connection to databases of this pool in one transaction, and empties
  // them. Their writer locks are held. On return other connections see them. With
  // durability::durable they and all commits before are durable; with durability::ordered a crash
  // may lose them, but then also all later ones. On an error nothing is committed.
  [[nodiscard]] result<> commit(std::span<const part> parts, durability d);

 private:
  open_pool(stele::pool<stored_databases> pool, bool defers)
      : pool_(std::move(pool)), defers_(defers) {}
  friend class database;
  bool defer(std::span<const part> parts);
  result<> flush_deferred();
  result<> flush_before_commit(std::unique_lock<std::mutex>& versions);
  result<> store_flushed(std::span<database* const> those);
  // Errors: full, if no pool here can hold a database of this size.
  [[nodiscard]] result<> may_have(std::uint64_t bytes) const;
  bool has_deferred();
  bool has_waiting() const noexcept;

  stele::pool<stored_databases> pool_;
  bool has_thread_ = false;
  bool defers_;
  // Outermost: one update of the pool at a time, because its policy is `external`.
  std::mutex updates_;
  std::mutex versions_;      // of all databases, and of the list of them
  bool holds_back_ = false;  // under versions_: commits are not deferred now
  std::map<std::string, std::unique_ptr<database>> databases_;
  bool flush_failed_ = false;          // the flusher's own
  detail::background_thread flusher_;  // last: it uses all above
};

}  // namespace stele::sqlite
