// One connection of SQLite to a database: its locks, its snapshot, the writes of its transaction.
//
// SQLite calls from one thread at a time. A transaction may begin in one thread and end in another;
// the pool's own transaction is within one call, end_commit().
#pragma once

#include <base/assert.h>
#include "api.h"
#include "database.h"
#include "file_name.h"

#include <functional>

namespace stele::sqlite {

class connection {
 public:
  static constexpr int synchronous_full = 2;

  // Adds itself to the process's connections, under the registry's mutex; the destructor removes
  // it. `pending_limit`: bytes of a transaction's writes in memory, above which appended blocks are
  // stored before the commit.
  connection(std::string path, open_pool& pool, database& db, std::size_t pending_limit);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  const std::string& path() const noexcept { return name_.path(); }
  open_pool& pool() const noexcept { return *pool_; }
  int level() const noexcept { return level_; }
  bool is_reserved() const noexcept { return of_->has_writer(); }

  // These return SQLite's codes. write() and truncate() may throw std::bad_alloc.
  int read(std::uint64_t at, std::span<std::byte> to);
  int write(std::uint64_t at, std::span<const std::byte> from);
  int truncate(std::uint64_t size);
  int lock(int level);
  void unlock(int level) noexcept;
  int seal(const char* super_journal);
  void note_sync() noexcept { synced_ = true; }
  int end_commit();
  // The commit has failed, so SQLite's cache may differ from the database.
  void forget_pages() noexcept { cache_.lost(); }
  std::uint64_t size_now() noexcept {
    if (level_ != SQLITE_LOCK_NONE) return size();
    STELE_ASSERT(!writes_.exist());  // sqlite.md P4
    of_->begin_read(reader_);
    of_->end_read(reader_);
    return reader_.size;
  }

  // `PRAGMA data_version` is about to be run.
  void tell_all_commits() noexcept { cache_.tell_all(); }

  bool has_moved();
  void belongs_to(sqlite3** handle);
  // This connection and the others of the program's handle.
  void for_all_of_handle(const std::function<void(connection&)>& call);

  // Between BEGIN and its end; then SQLite refuses some pragmas.
  bool in_transaction() const noexcept {
    return handle_ != nullptr && *handle_ != nullptr && sqlite3_get_autocommit(*handle_) == 0;
  }

  // Set by pragmas.
  int synchronous = synchronous_full;
  bool exclusive = false;
  std::string journal_mode = "delete";

 private:
  friend int commit_waiting_for(const char* super_journal);

  std::uint64_t size() const noexcept { return writes_.exist() ? writes_.size() : reader_.size; }
  void load(std::uint64_t number, pending_writes::block& to) const;
  void read_through(std::uint64_t at, std::span<std::byte> to) const;
  int poisoned(int code) const;
  int failed(const error& why, int code) const;  // says why the pool is poisoned, if it is
  void unlock_writer() noexcept;
  void drop_writes() noexcept;
  void begin_writes() noexcept;
  void store_early();
  static int commit(std::span<connection* const> together);
  template <class Which>
  static int commit_those(Which&& which);

  const file_name name_;
  open_pool* const pool_;
  database* const of_;
  const std::size_t pending_limit_;
  std::uint64_t most_pending_ = 0;  // of this transaction
  sqlite3** handle_ = nullptr;      // where SQLite keeps the handle that this connection is of
  int level_ = SQLITE_LOCK_NONE;
  bool writer_ = false, has_moved_ = false;
  long asked_at_ = -1;                    // ns of a clock: when the name was looked up
  bool sealed_ = false, synced_ = false;  // between SYNC and COMMIT_PHASETWO
  bool denied_wal_ = false;               // in this transaction
  std::string super_journal_;
  database::snapshot reader_;
  pending_writes writes_;
  cached_blocks cache_;
};

}  // namespace stele::sqlite
