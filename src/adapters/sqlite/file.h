// A connection's open database: what SQLite calls a file.
#pragma once

#include "api.h"

#include <stele/error.h>

#include <memory>
#include <new>
#include <string>

namespace stele::sqlite {

class open_pool;

// No write reaches media before its transaction commits, and then all do at once: there is no order
// and no part to see.
inline constexpr int file_characteristics =
    SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL | SQLITE_IOCAP_POWERSAFE_OVERWRITE;

std::size_t file_bytes() noexcept;  // of a sqlite3_file of open_database
// Opens the database that `name` and its URI parameters describe. On an error the file has no
// methods.
int open_database(sqlite3_file* file, const char* name, int flags, int* out_flags);
// For tools: databases of this path are those of `pool` until disown(path), which destroys the pool
// without closing it first. Connections to it are closed before that.
open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool);
void disown(const std::string& path);
// Commits the databases that wait for the end of this super-journal; the commit point of a
// transaction on several databases.
int commit_waiting_for(const char* super_journal);

// The SQLite code for an error. Its sentence goes to SQLite's log and is what `PRAGMA stele_error`
// says.
int report(const error& why, int io_code);
std::string last_report();

// Nothing is thrown into SQLite. Memory that is missing is `out_of_memory`.
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
