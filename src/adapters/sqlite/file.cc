// SQLite's calls on an open database, and the list of what this process has open.
#include "file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <base/mutant.h>
#include <base/per_process.h>
#include <media/os.h>
#include <tx/runtime.h>

#include "connection.h"
#include "database.h"
#include "foreign_file.h"
#include "options.h"
#include "pragma.h"

namespace stele::sqlite {

namespace {

// The file that a path leads to now, which is not always the one that it led to before.
struct file_id {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const file_id&) const = default;
};
std::optional<file_id> id_of(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return std::nullopt;
  return file_id{s.st_dev, s.st_ino};
}

// The mutex is held while a pool is opened or closed. A child of fork has none of its parent's
// connections.
struct process {
  std::recursive_mutex mutex;
  std::map<file_id, std::unique_ptr<open_pool>> pools;        // that connections have open
  std::map<std::string, std::unique_ptr<open_pool>> adopted;  // by path
  std::vector<connection*> connections;
  std::string last_report;
};
process& here() {
  return base::per_process<process>();
}

using database_file = file_of<connection>;
connection& of(sqlite3_file* f) noexcept {
  return database_file::in(f);
}

}  // namespace

int report(const error& why, int io_code) {
  int code = io_code;
  switch (why.code) {
    case errc::not_found:
    case errc::permission:
    case errc::unsupported:
    case errc::invalid_argument:
      code = SQLITE_CANTOPEN;
      break;
    case errc::read_only:
      code = SQLITE_READONLY;
      break;
    case errc::in_use:
      code = SQLITE_BUSY;
      break;
    case errc::not_a_pool:
    case errc::version:
    case errc::layout:
      code = SQLITE_NOTADB;
      break;
    case errc::corrupt:
    case errc::lost:
      code = SQLITE_CORRUPT;
      break;
    case errc::full:
      code = SQLITE_FULL;
      break;
    default:
      break;
  }
  {
    const std::scoped_lock one(here().mutex);
    here().last_report = why.message;
  }
  sqlite3_log(code, "%s", why.message.c_str());
  return code;
}

std::string last_report() {
  const std::scoped_lock one(here().mutex);
  return here().last_report;
}

void forget_report() {
  const std::scoped_lock one(here().mutex);
  here().last_report.clear();
}

void connection::load(std::uint64_t number, pending_writes::block& to) const {
  if (number * block_size >= writes_.stored_limit()) return of_->read_early(number, to, 0);
  const std::uint64_t begin = number * block_size, stored = reader_.size;
  const std::size_t there = std::min<std::uint64_t>(block_size, stored - std::min(stored, begin));
  of_->read(reader_, begin, std::span(to).first(there));
  std::fill(to.begin() + there, to.end(), std::byte{0});
}

int connection::poisoned(int code) const {
  return report(pool_->poison_error(path(), "close all connections to it and open it again"), code);
}

int connection::failed(const error& why, int code) const {
  return pool_->is_poisoned() ? poisoned(code) : report(why, code);
}

int connection::read(std::uint64_t at, std::span<std::byte> to) {
  const bool unlocked =
      level_ == SQLITE_LOCK_NONE;  // SQLite reads the header of a database that it opens
  if (unlocked) of_->begin_read(reader_);
  const auto there = part_there(to, at, size());
  if (writes_.exist())
    read_through(at, there);
  else if (!unlocked && version_bytes::is_question(at, there.size()))
    cache_.answer(of_->changes(), reader_.changes, there.first<version_bytes::size>());
  else
    of_->read(reader_, at, there);
  if (unlocked)
    of_->end_read(reader_);
  else if (!version_bytes::is_question(at, there.size()))
    cache_.note(at, there);
  if (pool_->is_poisoned()) return poisoned(SQLITE_IOERR_READ);
  return end_read(to, there.size());
}

void connection::read_through(std::uint64_t at, std::span<std::byte> to) const {
  while (!to.empty()) {
    const std::size_t part = std::min<std::size_t>(to.size(), block_size - at % block_size);
    const std::uint64_t number = at / block_size;
    if (const auto* written = writes_.find(number))
      std::copy_n(written->data() + at % block_size, part, to.data());
    else if (writes_.is_early(number))
      of_->read_early(number, to.first(part), at % block_size);
    else if (at < writes_.stored_limit())
      of_->read(reader_, at, to.first(part));
    else
      std::ranges::fill(to.first(part), std::byte{0});
    at += part;
    to = to.subspan(part);
  }
}

namespace {

// A copy of a database in WAL mode says so in its header, and SQLite would look for the WAL. The
// copy says that it has none. True: it did, so the writer's cache is wrong.
bool deny_wal(std::span<std::byte> header) {
  constexpr std::size_t write_version = 18, read_version = 19;
  if (header[read_version] != std::byte{2}) return false;
  header[write_version] = header[read_version] = std::byte{1};
  return true;
}

}  // namespace

// Does nothing if the transaction has written before.
void connection::begin_writes() noexcept {
  if (writes_.exist()) return;
  writes_.begin(reader_.size);
  most_pending_ = pending_limit_;
}

int connection::write(std::uint64_t at, std::span<const std::byte> from) {
  if (!writer_) return SQLITE_READONLY;
  sealed_ = false;
  begin_writes();
  writes_.write(at, from,
                [&](std::uint64_t number, pending_writes::block& to) { load(number, to); });
  cache_.note(at, from);
  if (at == 0 && deny_wal(*writes_.find(0))) denied_wal_ = true;
  if (writes_.bytes() > most_pending_) store_early();
  return SQLITE_OK;
}

// Tried again when as much has been written once more.
void connection::store_early() {
  pool_->store_early({of_, &reader_, &writes_});
  most_pending_ = writes_.bytes() + pending_limit_;
}

int connection::truncate(std::uint64_t size) {
  if (!writer_) return SQLITE_READONLY;
  begin_writes();
  writes_.set_size(size,
                   [&](std::uint64_t number, pending_writes::block& to) { load(number, to); });
  return SQLITE_OK;
}

// A reader that wants to write must have seen the newest version: as SQLite in WAL mode, it has to
// begin again.
int connection::lock(int level) {
  if (level <= level_) return SQLITE_OK;
  if (pool_->is_poisoned()) return poisoned(SQLITE_IOERR_LOCK);
  const bool begins = level_ == SQLITE_LOCK_NONE;
  if (level > SQLITE_LOCK_SHARED || exclusive) {
    if (!writer_ && !of_->lock_writer()) return SQLITE_BUSY;
    writer_ = true;
  }
  if (begins) {
    of_->begin_read(reader_);
    cache_.begin(reader_.changes);
  }
  if (level > SQLITE_LOCK_SHARED && !of_->is_newest(reader_)) {
    if (!exclusive) unlock_writer();
    return SQLITE_BUSY_SNAPSHOT;
  }
  level_ = level;
  return SQLITE_OK;
}

void connection::unlock(int level) noexcept {
  if (level >= level_) return;
  if (level_ > SQLITE_LOCK_SHARED) drop_writes();
  if (level <= SQLITE_LOCK_SHARED && !(exclusive && level == SQLITE_LOCK_SHARED)) unlock_writer();
  if (level == SQLITE_LOCK_NONE) of_->end_read(reader_);
  level_ = level;
}

void connection::unlock_writer() noexcept {
  if (std::exchange(writer_, false)) of_->unlock_writer();
}

void connection::drop_writes() noexcept {
  writes_.clear();
  denied_wal_ = false;
  sealed_ = false;
}

// SQLite has written all that belongs to the transaction, and now asks whether it can be committed.
int connection::seal(const char* super_journal) {
  sealed_ = true;
  synced_ = false;
  if (const std::string_view name = super_journal != nullptr ? super_journal : "";
      name != super_journal_) {
    const std::scoped_lock one(here().mutex);  // commits of other threads look for theirs
    super_journal_ = name;
  }
  if (!writes_.exist()) return SQLITE_OK;
  if (auto room = pool_->reserve({of_, &reader_, &writes_}); !room)
    return failed(room.error(), SQLITE_IOERR_FSYNC);
  return SQLITE_OK;
}

// All databases of a pool that one SQLite transaction has changed. Their caches may be wrong until
// the commit has succeeded: after an error, and also when it throws, SQLite may have pages of it.
int connection::commit(std::span<connection* const> together) {
  for (connection* c : together) c->cache_.lost();
  std::vector<open_pool::part> parts;
  bool durable = false;
  for (connection* c : together) {
    parts.push_back({c->of_, &c->reader_, &c->writes_});
    durable |= c->synchronous >= synchronous_full && c->synced_;
    c->sealed_ = false;
  }
  auto done =
      together[0]->pool_->commit(parts, durable ? durability::durable : durability::ordered);
  if (!done) return together[0]->failed(done.error(), SQLITE_IOERR_FSYNC);
  for (connection* c : together)
    if (!std::exchange(c->denied_wal_, false)) c->cache_.committed(c->reader_.changes);
  return SQLITE_OK;
}

template <class Which>
int connection::commit_those(Which&& which) {
  std::map<open_pool*, std::vector<connection*>> waiting;
  {
    const std::scoped_lock one(here().mutex);
    for (connection* c : here().connections)  // which() first: others are in other threads
      if (which(*c) && c->sealed_ && c->writes_.exist()) waiting[c->pool_].push_back(c);
  }
  if (base::planted(base::mutant::sqlite_one_by_one))
    for (auto& [pool, together] : waiting)
      for (; together.size() > 1; together.pop_back())
        if (const int code = commit(std::array{together.back()}); code != SQLITE_OK) return code;
  for (const auto& [pool, together] : waiting)
    if (const int code = commit(together); code != SQLITE_OK) return code;
  return SQLITE_OK;
}

int connection::end_commit() {
  if (!writes_.exist()) return SQLITE_OK;
  sealed_ = true;
  const auto is_with_this = [this](const connection& c) {
    return c.pool_ == pool_ && handle_ != nullptr && c.handle_ != nullptr && *c.handle_ == *handle_;
  };
  const auto waits_too = [&](const connection* c) {
    return c != this && is_with_this(*c) && c->sealed_ && c->writes_.exist();
  };
  bool together = false;
  {
    const std::scoped_lock one(here().mutex);
    together = std::ranges::any_of(here().connections, waits_too);
  }
  return together ? commit_those(is_with_this) : commit(std::array{this});
}

int commit_waiting_for(const char* super_journal) {
  return connection::commit_those(
      [&](const connection& c) { return c.super_journal_ == super_journal; });
}

void connection::belongs_to(sqlite3** handle) {
  const std::scoped_lock one(here().mutex);
  handle_ = handle;
  for (const connection* c : here().connections)
    if (c != this && c->handle_ != nullptr && *c->handle_ == *handle) exclusive = c->exclusive;
}

void connection::for_all_of_handle(const std::function<void(connection&)>& call) {
  const std::scoped_lock one(here().mutex);
  for (connection* c : here().connections)
    if (c == this || (handle_ != nullptr && c->handle_ != nullptr && *c->handle_ == *handle_))
      call(*c);
}

namespace {

bool is_sqlite_file(const std::string& path) {
  constexpr std::string_view begin("SQLite format 3\0", 16);
  return media::os::read_text(path.c_str(), begin.size()) == begin;
}

// SQLite takes an empty file for a new database.
void remove_if_empty(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_size == 0) ::unlink(path.c_str());
}

std::unexpected<error> why_not_opened(error why, const std::string& path) {
  if (why.code == errc::not_a_pool && is_sqlite_file(path))
    why.message = path +
                  " is an ordinary SQLite database, not a pool; make a pool of it by `stele sqlite "
                  "import " +
                  path + " POOL`, or open it without vfs=stele";
  return std::unexpected(std::move(why));
}

// Under here().mutex.
open_pool* find_pool(const std::string& path) {
  if (const auto at = here().adopted.find(path); at != here().adopted.end())
    return at->second.get();
  const auto id = id_of(path);
  if (!id) return nullptr;
  const auto at = here().pools.find(*id);
  return at == here().pools.end() ? nullptr : at->second.get();
}

// When the program ends with connections open, what waits in memory is made durable all the same.
// Another thread may be about to open or close a pool, and is not waited for.
void flush_at_exit() {
  const std::unique_lock one(here().mutex, std::try_to_lock);
  if (!one) return;
  for (const auto& [id, pool] : here().pools)
    (void)within_boundary(SQLITE_NOMEM, [&] {
      if (!pool->is_poisoned()) (void)pool->flush();
      return SQLITE_OK;
    });
}

// Under here().mutex. The file of a pool that is open may have been removed, and its inode is kept
// by its mapping, so a path that leads to the same inode leads to the same pool.
result<open_pool*> acquire_pool(const std::string& path, const pool_options& options) {
  if (open_pool* const open = find_pool(path)) {
    if (open->is_poisoned())
      return std::unexpected(open->poison_error(path, "close all connections to it first"));
    return open;
  }
  [[maybe_unused]] static const int at_exit = std::atexit(flush_at_exit);
  if (options.create_size != 0) remove_if_empty(path);
  auto pool = open_pool::open(path, options);
  if (!pool) return why_not_opened(std::move(pool.error()), path);
  const auto id = id_of(path);
  if (!id)
    return std::unexpected(error{errc::not_found, path + " was removed while it was opened"});
  const auto [at, is_new] = here().pools.try_emplace(*id, std::move(*pool));
  if (!is_new)
    return std::unexpected(error{errc::in_use, path + " was replaced while it was opened"});
  return at->second.get();
}

// Under here().mutex. Closes the pool when no connection has it. Throws std::bad_alloc; then the
// pool stays open, for the next connection to it.
void close_if_unused(const open_pool& pool) {
  if (std::ranges::any_of(here().connections,
                          [&](const connection* c) { return &c->pool() == &pool; }))
    return;
  const auto at =
      std::ranges::find_if(here().pools, [&](const auto& p) { return p.second.get() == &pool; });
  if (at == here().pools.end()) return;
  const auto closed = at->second->close();
  const bool is_known = at->second->is_poisoned();  // then the error was told before
  here().pools.erase(at);
  if (!closed && !is_known) report(closed.error(), SQLITE_IOERR_CLOSE);
}

}  // namespace

open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool) {
  const std::scoped_lock one(here().mutex);
  return here().adopted.emplace(path, std::move(pool)).first->second.get();
}

void disown(const std::string& path) {
  const std::scoped_lock one(here().mutex);
  here().adopted.erase(path);
}

connection::connection(std::string path, open_pool& pool, database& db, std::size_t pending_limit)
    : name_(std::move(path)), pool_(&pool), of_(&db), pending_limit_(pending_limit) {
  auto& all = here().connections;
  all.push_back(this);
  try {
    of_->add(reader_);
  } catch (...) {
    all.pop_back();
    throw;
  }
}

// A pool with a thread of its own asks once a tick of the clock, so some milliseconds late.
bool connection::has_moved() {
  timespec now{};
  if (pool_->has_thread()) ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (!pool_->has_thread() || std::exchange(asked_at_, now.tv_nsec) != now.tv_nsec)
    has_moved_ = name_.leads_elsewhere();
  return has_moved_;
}

connection::~connection() {
  unlock(SQLITE_LOCK_NONE);
  of_->remove(reader_);
  std::erase(here().connections, this);
}

namespace {

// Calls the method, unless the file was opened by the process that this one is a fork of.
template <auto Method, int Refused>
struct in_own_process;
template <class... Arguments, int (*Method)(sqlite3_file*, Arguments...), int Refused>
struct in_own_process<Method, Refused> {
  static int call(sqlite3_file* f, Arguments... arguments) {
    const detail::runtime& core = of(f).pool().content().core();
    if (core.is_of_parent()) [[unlikely]]
      return within_boundary(SQLITE_IOERR_NOMEM,
                             [&] { return report(core.unusable().error(), Refused); });
    return Method(f, arguments...);
  }
};

// In a child of fork: locks and lists are the parent's.
int close_in_child(detail::runtime& core) {
  core.leave_to_parent();
  return SQLITE_OK;
}

int close_file(sqlite3_file* f) {
  if (detail::runtime& core = of(f).pool().content().core(); core.is_of_parent())
    return close_in_child(core);
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    const std::scoped_lock one(here().mutex);
    const open_pool& pool = of(f).pool();
    delete &of(f);
    close_if_unused(pool);
    return SQLITE_OK;
  });
}
int read_file(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    return of(f).read(static_cast<std::uint64_t>(at),
                      {static_cast<std::byte*>(to), static_cast<std::size_t>(size)});
  });
}
int write_file(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    return of(f).write(static_cast<std::uint64_t>(at),
                       {static_cast<const std::byte*>(from), static_cast<std::size_t>(size)});
  });
}
int truncate_file(sqlite3_file* f, sqlite3_int64 size) {
  return within_boundary(SQLITE_IOERR_NOMEM,
                         [&] { return of(f).truncate(static_cast<std::uint64_t>(size)); });
}
int sync_file(sqlite3_file* f, int) {
  of(f).note_sync();
  return SQLITE_OK;
}
int size_of_file(sqlite3_file* f, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(f).size_now());
  return SQLITE_OK;
}
int lock_file(sqlite3_file* f, int level) {
  return within_boundary(SQLITE_IOERR_NOMEM, [&] { return of(f).lock(level); });
}
int unlock_file(sqlite3_file* f, int level) {
  of(f).unlock(level);
  return SQLITE_OK;
}
int is_file_reserved(sqlite3_file* f, int* reserved) {
  *reserved = of(f).is_reserved();
  return SQLITE_OK;
}
int control_in_child(const detail::runtime& core, int what, void* argument) {
  if (what == SQLITE_FCNTL_PRAGMA) {
    char** const arguments = static_cast<char**>(argument);
    const std::string_view name = arguments[1];
    if (name == "stele_error") return answer(arguments, last_report());
    if (!name.starts_with("stele_")) return SQLITE_NOTFOUND;
  }
  return report(core.unusable().error(), SQLITE_IOERR);
}

// SQLite forgets the pages that the transaction has changed only after errors of a device or of a
// full one; after others it goes on with them, and a later commit would store them.
int end_commit_of(connection& c) {
  int code = within_boundary(SQLITE_IOERR_NOMEM, [&] { return c.end_commit(); });
  const int kind = code & 0xFF;
  if (code != SQLITE_OK && kind != SQLITE_IOERR && kind != SQLITE_FULL) code = SQLITE_IOERR_FSYNC;
  if (code != SQLITE_OK) c.forget_pages();
  return code;
}

int control_file(sqlite3_file* f, int what, void* argument) {
  return within_boundary(SQLITE_NOMEM, [&] {
    connection& c = of(f);
    if (const detail::runtime& core = c.pool().content().core(); core.is_of_parent())
      return control_in_child(core, what, argument);
    switch (what) {
      case SQLITE_FCNTL_SYNC:
        return c.seal(static_cast<const char*>(argument));
      case SQLITE_FCNTL_COMMIT_PHASETWO:
        return end_commit_of(c);
      case SQLITE_FCNTL_PDB:
        c.belongs_to(static_cast<sqlite3**>(argument));
        return SQLITE_OK;
      case SQLITE_FCNTL_PRAGMA:
        return run_pragma(c, static_cast<char**>(argument));
      case SQLITE_FCNTL_LOCKSTATE:
        *static_cast<int*>(argument) = c.level();
        return SQLITE_OK;
      case SQLITE_FCNTL_VFSNAME:
        *static_cast<char**>(argument) = sqlite3_mprintf("stele");
        return SQLITE_OK;
      case SQLITE_FCNTL_MMAP_SIZE:
        *static_cast<sqlite3_int64*>(argument) = 0;
        return SQLITE_OK;
      case SQLITE_FCNTL_HAS_MOVED:  // SQLite then refuses to write
        *static_cast<int*>(argument) = c.has_moved();
        return SQLITE_OK;
      case SQLITE_FCNTL_SIZE_HINT:
      case SQLITE_FCNTL_CHUNK_SIZE:
        return SQLITE_OK;
      default:
        return SQLITE_NOTFOUND;
    }
  });
}
int characteristics(sqlite3_file*) {
  return file_characteristics;
}

constexpr sqlite3_io_methods methods = {
    1,
    close_file,
    in_own_process<read_file, SQLITE_IOERR_READ>::call,
    in_own_process<write_file, SQLITE_IOERR_WRITE>::call,
    in_own_process<truncate_file, SQLITE_IOERR_TRUNCATE>::call,
    in_own_process<sync_file, SQLITE_IOERR_FSYNC>::call,
    in_own_process<size_of_file, SQLITE_IOERR_FSTAT>::call,
    in_own_process<lock_file, SQLITE_IOERR_LOCK>::call,
    in_own_process<unlock_file, SQLITE_IOERR_UNLOCK>::call,
    in_own_process<is_file_reserved, SQLITE_IOERR_CHECKRESERVEDLOCK>::call,
    control_file,
    sector_size,
    characteristics,
    {},
    {},
    {},
    {},
    {},
    {}};

}  // namespace

namespace {

bool is_write_protected(const error& why) noexcept {
  return why.code == errc::read_only || why.code == errc::permission;
}

// As SQLite opens its own files: only for reading, where the file or its file system can only be
// read. `why`: it could not be opened for writing.
int open_protected(sqlite3_file* file, const std::string& path, const database_options& options,
                   const error& why, int* out_flags) {
  if (open_foreign(file, path, options) != SQLITE_OK) {
    report(why, SQLITE_CANTOPEN);
    return SQLITE_CANTOPEN;
  }
  if (out_flags != nullptr)
    *out_flags =
        (*out_flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  return SQLITE_OK;
}

}  // namespace

namespace {

// Under here().mutex. On an error, also one that is thrown, no connection is left, and no pool that
// only this one would have.
int open_in(sqlite3_file* file, const char* name, open_pool& pool, const database_options& options,
            bool make) try {
  const auto db = pool.find(options.database, make);
  if (!db) {
    close_if_unused(pool);
    return report(db.error(), SQLITE_IOERR);
  }
  auto opened = std::make_unique<connection>(name, pool, **db, options.pending_bytes);
  // SQLite locks no immutable database: it sees the version of now.
  if (sqlite3_uri_boolean(name, "immutable", 0) != 0) opened->lock(SQLITE_LOCK_SHARED);
  static_cast<database_file*>(file)->open = opened.release();
  file->pMethods = &methods;
  return SQLITE_OK;
} catch (...) {
  close_if_unused(pool);
  throw;
}

}  // namespace

int open_database(sqlite3_file* file, const char* name, int flags, int* out_flags) {
  file->pMethods = nullptr;
  return within_boundary(SQLITE_NOMEM, [&] {
    forget_report();
    auto options = options_of(name);
    if (!options) return report(options.error(), SQLITE_CANTOPEN);
    if (sqlite3_uri_boolean(name, "nolock", 0) != 0)
      return report({errc::invalid_argument,
                     std::string(name) + " cannot be opened with nolock=1: a reader's locks "
                                         "say which version it reads; they hold up nobody"},
                    SQLITE_CANTOPEN);
    const bool make = (flags & SQLITE_OPEN_CREATE) != 0;
    if (!make) options->pool.create_size = 0;
    const std::scoped_lock one(here().mutex);
    const std::string path = name;
    if (out_flags != nullptr) *out_flags = flags;
    if ((flags & SQLITE_OPEN_READONLY) != 0 && find_pool(path) == nullptr)
      return open_foreign(file, path, *options);
    const auto pool = acquire_pool(path, options->pool);
    if (!pool && is_write_protected(pool.error()))
      return open_protected(file, path, *options, pool.error(), out_flags);
    if (!pool) return report(pool.error(), SQLITE_IOERR);
    return open_in(file, name, **pool, *options, make);
  });
}

}  // namespace stele::sqlite
