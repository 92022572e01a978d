// Pragmas of SQLite that differ here, and Stele's own: docs/guide/sqlite.md.
#pragma once

#include "connection.h"

namespace stele::sqlite {

// As SQLITE_FCNTL_PRAGMA. SQLITE_NOTFOUND: SQLite executes the pragma.
int run_pragma(connection& c, char** arguments);

// Answers a pragma with a row of this text. Returns SQLite's code.
int answer(char** arguments, const std::string& text);

}  // namespace stele::sqlite
