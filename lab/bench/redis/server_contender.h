// Redis servers as contenders: Stele's rows have the module with a pool, the rivals Redis' own
// files.
//
// Each thread is a client with a connection of its own, which waits for each answer.
#pragma once

#include <bench/contender.h>

namespace stele::bench::redis {

// A server with the module, whose pool has this mechanism. Errors of all: unsupported, for other
// workloads.
[[nodiscard]] contender_result make_with_module(const task& t, const std::string& mechanism);
// By name: aof-always, aof-everysec. Errors: not_found.
[[nodiscard]] contender_result make_with_files(const task& t, std::string_view name);
// Without persistence.
[[nodiscard]] contender_result make_without_files(const task& t);

std::vector<std::string> file_contender_names();

}  // namespace stele::bench::redis
