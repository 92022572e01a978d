// SQLite on ordinary files by its own VFS: the rivals and the limit when SQLite is the host.
#pragma once

#include <bench/contender.h>

namespace stele::bench::sql {

// By name: delete, truncate, persist, wal-full, wal-normal, memory. Each is a journal mode; all but
// wal-normal have synchronous=FULL. Errors: not_found, and those of make_sql_workload.
[[nodiscard]] contender_result make_on_file(const task& t, std::string_view name);
// The database of a connection to ":memory:", without media and journal on media. Errors:
// unsupported, when the task has several threads; those of make_sql_workload.
[[nodiscard]] contender_result make_in_memory(const task& t);

std::vector<std::string> file_contender_names();

}  // namespace stele::bench::sql
