// A connection's open database, which is a file to SQLite.
#pragma once

#include <base/assert.h>
#include "api.h"

#include <stele/error.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>

namespace stele::sqlite {

class open_pool;

// A transaction's writes reach media at its commit, all at once, so no crash shows some of them.
inline constexpr int file_characteristics =
    SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL | SQLITE_IOCAP_POWERSAFE_OVERWRITE;

// An open file of the VFS. All kinds have one size.
template <class Content>
struct file_of : sqlite3_file {
  Content* open;
  static std::add_lvalue_reference_t<Content> in(sqlite3_file* f) noexcept
    requires(!std::is_void_v<Content>)
  {
    STELE_ASSERT(static_cast<file_of*>(f)->open != nullptr);
    return *static_cast<file_of*>(f)->open;
  }
};
inline constexpr std::size_t file_bytes = sizeof(file_of<void>);

// Methods that are the same for several kinds of files.
inline int do_nothing(sqlite3_file*, int) {
  return SQLITE_OK;
}
inline int not_reserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}
inline int sector_size(sqlite3_file*) {
  return 512;
}

// The part of a read at `at` that lies within `size` bytes.
template <class Byte>
std::span<Byte> part_there(std::span<Byte> to, std::uint64_t at, std::uint64_t size) noexcept {
  const auto there = to.first(at >= size ? 0 : std::min<std::uint64_t>(to.size(), size - at));
  STELE_ASSERT(there.empty() || at + there.size() <= size);
  return there;
}
// Ends a read that found `there` bytes: zeroes the rest, as SQLite requires.
template <class Byte>
int end_read(std::span<Byte> to, std::size_t there) noexcept {
  STELE_ASSERT(there <= to.size());
  std::ranges::fill(to.subspan(there), Byte{0});
  return there == to.size() ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

// Opens the database that `name` and its URI parameters describe. On an error the file has no
// methods.
int open_database(sqlite3_file* file, const char* name, int flags, int* out_flags);
// For tools: connections to this path use `pool` until disown(path), which destroys the pool
// without closing it. Precondition of disown: no connection is open.
open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool);
void disown(const std::string& path);
// Commits the databases that name this super-journal: the commit point of a transaction on several
// databases.
int commit_waiting_for(const char* super_journal);

// The SQLite code for an error. Its sentence goes to SQLite's log and to `PRAGMA stele_error`.
int report(const error& why, int io_code);
std::string last_report();
// Called before a call that is to report its own error, not an earlier one.
void forget_report();

// Turns exceptions into codes: std::bad_alloc into `out_of_memory`.
template <class Call>
int within_boundary(int out_of_memory, Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (...) {
    return SQLITE_INTERNAL;
  }
}

}  // namespace stele::sqlite
