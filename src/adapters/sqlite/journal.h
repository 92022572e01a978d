// Rollback journals and super-journals: files in memory. None exists or is needed after a crash.
#pragma once

#include "api.h"

namespace stele::sqlite {

int open_journal(sqlite3_file* file, const char* name, int flags);
// A super-journal whose name is known here exists until it is deleted. Throws std::bad_alloc, if it
// is the process's first.
bool is_super_journal(const char* name);
void forget_super_journal(const char* name) noexcept;

}  // namespace stele::sqlite
