// SQLite's calls on a database that is open for reading, in a pool that another process may write.
#pragma once

#include "api.h"
#include "options.h"

namespace stele::sqlite {

// Opens it in place of open_database(). Returns SQLite's code; on an error the file has no methods.
int open_foreign(sqlite3_file* file, const std::string& path, const database_options& options);

}  // namespace stele::sqlite
