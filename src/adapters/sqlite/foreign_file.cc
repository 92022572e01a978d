// Read-only openings: each read transaction sees one version, or ends.
#include "foreign_file.h"

#include <strings.h>

#include <base/assert.h>
#include "file.h"
#include "foreign.h"
#include "pragma.h"

namespace stele::sqlite {

namespace {

using foreign_file = file_of<foreign_database>;
foreign_database& of(sqlite3_file* f) noexcept {
  return foreign_file::in(f);
}

int close(sqlite3_file* f) {
  delete &of(f);
  return SQLITE_OK;
}
int begin_read(foreign_database& d, int io_code) {
  const auto begun = d.begin_read();
  return begun ? SQLITE_OK : report(begun.error(), io_code);
}
int read(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
  return within_boundary(SQLITE_IOERR_NOMEM, [&]() -> int {
    const std::span bytes(static_cast<std::byte*>(to), static_cast<std::size_t>(size));
    const auto begin = static_cast<std::uint64_t>(at);
    const auto there = part_there(bytes, begin, of(f).size());
    const auto done = of(f).read(begin, there);
    if (!done) return report(done.error(), SQLITE_IOERR_READ);
    if (!*done) return SQLITE_BUSY_SNAPSHOT;
    return end_read(bytes, there.size());
  });
}
int write(sqlite3_file*, const void*, int, sqlite3_int64) {
  return SQLITE_READONLY;
}
int truncate(sqlite3_file*, sqlite3_int64) {
  return SQLITE_READONLY;
}
int size_of(sqlite3_file* f, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(f).size());
  return SQLITE_OK;
}
int lock(sqlite3_file* f, int level) {
  if (level > SQLITE_LOCK_SHARED) return SQLITE_READONLY;
  return within_boundary(SQLITE_NOMEM, [&] { return begin_read(of(f), SQLITE_IOERR_LOCK); });
}
int control(sqlite3_file*, int what, void* argument) {
  if (what == SQLITE_FCNTL_VFSNAME) {
    *static_cast<char**>(argument) = sqlite3_mprintf("stele");
    return SQLITE_OK;
  }
  if (what != SQLITE_FCNTL_PRAGMA) return SQLITE_NOTFOUND;
  char** const arguments = static_cast<char**>(argument);
  if (::strcasecmp(arguments[1], "stele_error") != 0) return SQLITE_NOTFOUND;
  return within_boundary(SQLITE_NOMEM, [&] { return answer(arguments, last_report()); });
}
int characteristics(sqlite3_file*) {
  return 0;
}

constexpr sqlite3_io_methods methods = {
    1,    close,      read,         write,   truncate,    do_nothing,      size_of,
    lock, do_nothing, not_reserved, control, sector_size, characteristics, {},
    {},   {},         {},           {},      {}};

}  // namespace

int open_foreign(sqlite3_file* file, const std::string& path, const database_options& options) {
  STELE_ASSERT_ALWAYS(file->pMethods == nullptr);
  auto opened = foreign_database::open(path, options.pool, options.database);
  if (!opened) return report(opened.error(), SQLITE_IOERR);
  if (const int code = begin_read(**opened, SQLITE_IOERR); code != SQLITE_OK) return code;
  static_cast<foreign_file*>(file)->open = opened->release();
  file->pMethods = &methods;
  return SQLITE_OK;
}

}  // namespace stele::sqlite
