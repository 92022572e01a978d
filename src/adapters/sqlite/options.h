// How to open the pool of a database: URI parameters, or the environment variable
// STELE_SQLITE_OPTIONS.
#pragma once

#include <stele/pool.h>

#include <string>

namespace stele::sqlite {

struct database_options {
  pool_options pool;
  std::string database = "main";        // its name in the pool
  std::size_t pending_bytes = 4 << 20;  // of a transaction; then it stores some
};

// `name`: as SQLite passes it to a VFS. Errors: invalid_argument, which names the parameter.
[[nodiscard]] result<database_options> options_of(const char* name);

}  // namespace stele::sqlite
