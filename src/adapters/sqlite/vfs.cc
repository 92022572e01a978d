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

// Sets methods of `ours` that only call those of the ordinary VFS.
template <auto Method, class Answer, class... Arguments>
void forward(Answer (*)(sqlite3_vfs*, Arguments...)) noexcept {
  ours.*Method = [](sqlite3_vfs*, Arguments... arguments) {
    return (ordinary->*Method)(ordinary, arguments...);
  };
}
template <auto... Methods>
void forward_all() noexcept {
  (forward<Methods>(ordinary->*Methods), ...);
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
    ours.xOpen = open, ours.xDelete = remove, ours.xAccess = access;
    forward_all<&sqlite3_vfs::xFullPathname, &sqlite3_vfs::xDlOpen, &sqlite3_vfs::xDlError,
                &sqlite3_vfs::xDlSym, &sqlite3_vfs::xDlClose, &sqlite3_vfs::xRandomness,
                &sqlite3_vfs::xSleep, &sqlite3_vfs::xCurrentTime, &sqlite3_vfs::xGetLastError>();
    if (ours.iVersion >= 2) forward_all<&sqlite3_vfs::xCurrentTimeInt64>();
  }
  return sqlite3_vfs_register(&ours, make_default);
}

}  // namespace stele::sqlite
