// A pool with SQLite databases that this process has open: docs/protocol/sqlite.md.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <tx/background_thread.h>

#include "pending.h"
#include "versions.h"

namespace stele::sqlite {

class database;

// Its databases commit together or one after another.
class open_pool {
 public:
  // Where a fence is a sync, ordered commits wait in memory until the pool's background thread
  // makes them durable; without that thread they are durable at once. Errors: those of pool::open;
  // unsupported, for mechanisms whose home is not in place.
  [[nodiscard]] static result<std::unique_ptr<open_pool>> open(const std::string& path,
                                                               pool_options options);
  // For tools, over a pool that is already open. Deferred ordered commits wait until flush().
  [[nodiscard]] static result<std::unique_ptr<open_pool>> over(stele::pool<stored_databases> pool);
  open_pool(const open_pool&) = delete;
  open_pool& operator=(const open_pool&) = delete;
  ~open_pool();

  stele::pool<stored_databases>& content() noexcept { return pool_; }
  // The database of this name; `make` creates it. Errors: not_found; those of update(). This and
  // the functions below are thread-safe.
  [[nodiscard]] result<database*> find(const std::string& name, bool make);
  bool is_poisoned() const noexcept;
  // Why the pool is poisoned: full if its device had no space.
  error poison_error(const std::string& path, const std::string& advice) const;
  // Whether a thread of its own makes deferred commits durable.
  bool has_thread() const noexcept { return has_thread_; }
  // As pool::check(); commits wait.
  [[nodiscard]] result<> check();
  // As pool::backup(), of all commits so far.
  [[nodiscard]] result<> backup(const std::string& path);
  // Makes the ordered commits so far durable, also those that the mechanism defers. Errors: those
  // of update() and sync(); then they stay deferred.
  [[nodiscard]] result<> flush();
  // Starts the thread that makes deferred commits durable. Called once.
  void start_flusher();
  // Flushes, unless the pool is poisoned, and closes it. Precondition: no call is in progress.
  // Throws std::bad_alloc; then the pool is open, and close() may be called again.
  [[nodiscard]] result<> close();

  struct part {
    database* of;
    versions::snapshot* reader;  // of the connection that writes; afterwards at the new version
    pending_writes* writes;
  };
  // Reserves room for a commit of these writes. Errors: full, io, poisoned.
  [[nodiscard]] result<> reserve(const part& p);
  // Stores the blocks that these writes append, and frees their memory. Does nothing if a reader
  // may read these blocks, or on an error, which the commit will report.
  void store_early(const part& p);
  // Commits the writes of one connection to databases of this pool in one transaction, and empties
  // them. Their writer locks are held. On return other connections see them. With
  // durability::durable they and all commits before are durable; with durability::ordered a crash
  // may lose them, but then also all later ones. On an error nothing is committed.
  [[nodiscard]] result<> commit(std::span<const part> parts, durability d);

 private:
  open_pool(stele::pool<stored_databases> pool, bool defers);
  friend class database;
  bool defer(std::span<const part> parts);
  result<> flush_deferred();
  result<> flush_before_commit(std::unique_lock<std::mutex>& seen);
  result<> store_flushed(std::span<database* const> those);
  // Errors: full, if no pool here can hold a database of this size.
  [[nodiscard]] result<> may_have(std::uint64_t bytes) const;
  bool has_deferred();
  bool has_waiting() const noexcept;
  // Each a database of this pool that has a writer, once, with writes.
  bool are_ready(std::span<const part> parts) const noexcept;

  stele::pool<stored_databases> pool_;
  bool has_thread_ = false;
  bool defers_;
  // Outermost: one update of the pool at a time, because its policy is `external`.
  std::mutex updates_;
  std::mutex versions_;      // of all databases, and of the list of them
  bool holds_back_ = false;  // guarded by versions_: commits are not deferred now
  std::map<std::string, std::unique_ptr<database>> databases_;
  bool flush_failed_ = false;          // the flusher's own
  detail::background_thread flusher_;  // last: it uses all above
};

}  // namespace stele::sqlite
