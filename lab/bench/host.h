// Hosts: programs that store their data in a pool, in place of a structure of Stele's. `sqlite` is
// the only one; lab/bench/sqlite.
//
// A task names its host. Then its operations are transactions of the host, on Stele's rows by the
// host's adapter to pools, on its rivals' and its limit's by the host itself.
#pragma once

#include <bench/contender.h>

namespace stele::bench {

// Errors of all: not_found (no such host, no such rival), unsupported (the build does not have the
// host, or the host not this task).
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t);
[[nodiscard]] contender_result make_host_rival(const task& t, std::string_view name);
// The host without media.
[[nodiscard]] contender_result make_host_limit(const task& t);
// Of SQLite; empty, where the build does not have it.
std::vector<std::string> host_rival_names();

}  // namespace stele::bench
