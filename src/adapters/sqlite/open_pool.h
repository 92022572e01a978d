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

// All its databases commit together or one after another.
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
  ~open_pool();

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
  // Makes the ordered commits so far durable, also those that the mechanism knows. Errors: those of
  // update() and sync(); then they wait on.
  [[nodiscard]] result<> flush();
  // In a thread of its own, deferred commits become durable soon. Called once.
  void start_flusher();
  // Flushes, unless the pool is poisoned, and closes it. No call is in progress. Throws
  // std::bad_alloc; then the pool is open, and close() may be called again.
  [[nodiscard]] result<> close();

  struct part {
    database* of;
    versions::snapshot* reader;  // of the connection that writes; afterwards at the new version
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
  bool holds_back_ = false;  // under versions_: commits are not deferred now
  std::map<std::string, std::unique_ptr<database>> databases_;
  bool flush_failed_ = false;          // the flusher's own
  detail::background_thread flusher_;  // last: it uses all above
};

}  // namespace stele::sqlite
