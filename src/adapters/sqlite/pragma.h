// Pragmas of SQLite that mean something else here, and those of Stele's own: docs/guide/sqlite.md.
#pragma once

#include "connection.h"

namespace stele::sqlite {

// As SQLITE_FCNTL_PRAGMA. SQLITE_NOTFOUND: SQLite goes on with it.
int run_pragma(connection& c, char** arguments);

// Answers a pragma with a row of this text. Returns SQLite's code.
int answer(char** arguments, const std::string& text);

}  // namespace stele::sqlite
