// The VFS: databases are pools, journals are in memory, all else is the default VFS's.
#include "vfs.h"

#include <algorithm>
#include <cstring>

#include <base/assert.h>
#include "file.h"
#include "journal.h"

namespace stele::sqlite {

namespace {

sqlite3_vfs* ordinary = nullptr;  // the VFS that was the default
sqlite3_vfs ours{};

bool ends_with(const char* name, const char* end) noexcept {
  const std::size_t n = std::strlen(name), e = std::strlen(end);
  return n >= e && std::memcmp(name + n - e, end, e) == 0;
}
bool is_journal(const char* name) noexcept {
  return ends_with(name, "-journal") || ends_with(name, "-wal");
}

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  STELE_ASSERT(ordinary != nullptr && ours.szOsFile >= static_cast<int>(file_bytes));
  if (name != nullptr && (flags & SQLITE_OPEN_MAIN_DB) != 0)
    return open_database(file, name, flags, out_flags);
  if ((flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0) {
    if (out_flags != nullptr) *out_flags = flags;
    return open_journal(file, name, flags);
  }
  if ((flags & SQLITE_OPEN_WAL) != 0) {
    file->pMethods = nullptr;
    return SQLITE_CANTOPEN;
  }
  return ordinary->xOpen(ordinary, name, file, flags, out_flags);
}

// SQLite deletes a super-journal with a sync of its folder to commit; without the sync it tidies up
// after it has rolled back one database. The other databases then check whether the super-journal
// exists: without it they would take their transaction for committed and keep their caches.
int remove(sqlite3_vfs*, const char* name, int sync_folder) {
  if (is_journal(name)) return SQLITE_OK;
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    if (!is_super_journal(name)) return ordinary->xDelete(ordinary, name, sync_folder);
    if (sync_folder == 0) return SQLITE_OK;
    const int code = commit_waiting_for(name);
    if (code == SQLITE_OK) forget_super_journal(name);
    return code;
  });
}

// A connection that has its journal open does not check; another connection must not take that
// journal for one left by a crash.
int access(sqlite3_vfs*, const char* name, int flags, int* there) {
  *there = 0;
  if (is_journal(name)) return SQLITE_OK;
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    if (!is_super_journal(name)) return ordinary->xAccess(ordinary, name, flags, there);
    *there = 1;
    return SQLITE_OK;
  });
}

int full_name(sqlite3_vfs*, const char* name, int size, char* to) {
  return ordinary->xFullPathname(ordinary, name, size, to);
}
void* open_library(sqlite3_vfs*, const char* name) {
  return ordinary->xDlOpen(ordinary, name);
}
void library_error(sqlite3_vfs*, int size, char* text) {
  ordinary->xDlError(ordinary, size, text);
}
void (*library_symbol(sqlite3_vfs*, void* library, const char* name))() {
  return ordinary->xDlSym(ordinary, library, name);
}
void close_library(sqlite3_vfs*, void* library) {
  ordinary->xDlClose(ordinary, library);
}
int randomness(sqlite3_vfs*, int size, char* to) {
  return ordinary->xRandomness(ordinary, size, to);
}
int sleep(sqlite3_vfs*, int microseconds) {
  return ordinary->xSleep(ordinary, microseconds);
}
int current_time(sqlite3_vfs*, double* now) {
  return ordinary->xCurrentTime(ordinary, now);
}
int current_time_int64(sqlite3_vfs*, sqlite3_int64* now) {
  return ordinary->xCurrentTimeInt64(ordinary, now);
}
int last_error(sqlite3_vfs*, int size, char* text) {
  return ordinary->xGetLastError(ordinary, size, text);
}

}  // namespace

int register_vfs(bool make_default) {
  if (ordinary == nullptr) {
    ordinary = sqlite3_vfs_find(nullptr);
    if (ordinary == nullptr) return SQLITE_ERROR;
    STELE_ASSERT_ALWAYS(ordinary != &ours);  // its functions would call themselves
    ours = *ordinary;
    ours.iVersion = std::min(ordinary->iVersion, 2);
    ours.szOsFile = std::max(ordinary->szOsFile, static_cast<int>(file_bytes));
    ours.zName = "stele";
    ours.pNext = nullptr;
    ours.xOpen = open, ours.xDelete = remove, ours.xAccess = access, ours.xFullPathname = full_name;
    ours.xDlOpen = open_library, ours.xDlError = library_error, ours.xDlSym = library_symbol,
    ours.xDlClose = close_library;
    ours.xRandomness = randomness, ours.xSleep = sleep, ours.xCurrentTime = current_time,
    ours.xGetLastError = last_error;
    if (ours.iVersion >= 2) ours.xCurrentTimeInt64 = current_time_int64;
  }
  return sqlite3_vfs_register(&ours, make_default);
}

}  // namespace stele::sqlite
