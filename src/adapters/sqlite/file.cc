// SQLite's calls on an open database, and how it is opened.
#include "file.h"

#include <base/assert.h>
#include <tx/runtime.h>

#include "connection.h"
#include "foreign_file.h"
#include "options.h"
#include "pragma.h"
#include "registry.h"

namespace stele::sqlite {

namespace {

using database_file = file_of<connection>;
connection& of(sqlite3_file* f) noexcept {
  return database_file::in(f);
}

// Calls the method, unless the parent of this forked process opened the file.
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
  STELE_ASSERT_ALWAYS(core.is_of_parent());
  core.leave_to_parent();
  return SQLITE_OK;
}

int close_file(sqlite3_file* f) {
  if (detail::runtime& core = of(f).pool().content().core(); core.is_of_parent())
    return close_in_child(core);
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    const auto one = registry::here().lock();
    const open_pool& pool = of(f).pool();
    delete &of(f);
    registry::here().close_if_unused(pool);
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
  STELE_ASSERT_ALWAYS(core.is_of_parent());
  if (what == SQLITE_FCNTL_PRAGMA) {
    char** const arguments = static_cast<char**>(argument);
    const std::string_view name = arguments[1];
    if (name == "stele_error") return answer(arguments, last_report());
    if (!name.starts_with("stele_")) return SQLITE_NOTFOUND;
  }
  return report(core.unusable().error(), SQLITE_IOERR);
}

// SQLite drops the pages that the transaction has changed only after SQLITE_IOERR and SQLITE_FULL;
// after other errors a later commit would store them.
int end_commit_of(connection& c) {
  int code = within_boundary(SQLITE_IOERR_NOMEM, [&] { return c.end_commit(); });
  const int kind = code & 0xFF;
  if (code != SQLITE_OK && kind != SQLITE_IOERR && kind != SQLITE_FULL) code = SQLITE_IOERR_FSYNC;
  if (code != SQLITE_OK) c.forget_pages();
  // sqlite.md P3: after other errors SQLite would go on with its pages.
  STELE_ASSERT(code == SQLITE_OK || (code & 0xFF) == SQLITE_IOERR || (code & 0xFF) == SQLITE_FULL);
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

bool is_write_protected(const error& why) noexcept {
  return why.code == errc::read_only || why.code == errc::permission;
}

// As SQLite does with its own files, opens a file that can only be read for reading. `why`: the
// error of opening it for writing.
int open_protected(sqlite3_file* file, const std::string& path, const database_options& options,
                   const error& why, int* out_flags) {
  if (open_foreign(file, path, options) != SQLITE_OK) {
    report(why, SQLITE_CANTOPEN);
    return SQLITE_CANTOPEN;
  }
  STELE_ASSERT_ALWAYS(file->pMethods != nullptr);
  if (out_flags != nullptr)
    *out_flags =
        (*out_flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  return SQLITE_OK;
}

// Under the registry's mutex. After an error or an exception neither the connection is left nor a
// pool that only this connection would use.
int open_in(sqlite3_file* file, const char* name, open_pool& pool, const database_options& options,
            bool make) try {
  const auto db = pool.find(options.database, make);
  if (!db) {
    registry::here().close_if_unused(pool);
    return report(db.error(), SQLITE_IOERR);
  }
  STELE_ASSERT_ALWAYS(&(*db)->pool() == &pool && file->pMethods == nullptr);
  auto opened = std::make_unique<connection>(name, pool, **db, options.pending_bytes);
  // SQLite locks no immutable database, so the snapshot is taken here.
  if (sqlite3_uri_boolean(name, "immutable", 0) != 0) opened->lock(SQLITE_LOCK_SHARED);
  static_cast<database_file*>(file)->open = opened.release();
  file->pMethods = &methods;
  return SQLITE_OK;
} catch (...) {
  registry::here().close_if_unused(pool);
  throw;
}

}  // namespace

open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool) {
  return registry::here().adopt(path, std::move(pool));
}

void disown(const std::string& path) {
  registry::here().disown(path);
}

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
    const auto one = registry::here().lock();
    const std::string path = name;
    if (out_flags != nullptr) *out_flags = flags;
    if ((flags & SQLITE_OPEN_READONLY) != 0 && registry::here().find(path) == nullptr)
      return open_foreign(file, path, *options);
    const auto pool = registry::here().acquire(path, options->pool);
    if (!pool && is_write_protected(pool.error()))
      return open_protected(file, path, *options, pool.error(), out_flags);
    if (!pool) return report(pool.error(), SQLITE_IOERR);
    return open_in(file, name, **pool, *options, make);
  });
}

}  // namespace stele::sqlite
