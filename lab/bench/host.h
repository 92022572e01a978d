// Hosts: programs that store their data in a pool, in place of a structure of Stele's: `sqlite`, in
// lab/bench/sqlite, and `redis`, in lab/bench/redis.
//
// A task names its host. Then its operations are transactions of the host, on Stele's rows by the
// host's adapter to pools, on its rivals' and its limit's by the host itself.
#pragma once

#include <bench/contender.h>

namespace stele::bench {

// Errors of all: not_found (no such host, no such rival), unsupported (the build does not have the
// host, or the host not this task).

// The workload of Stele's row, of a host that runs in this process (sqlite); else unsupported.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t);
// Stele's row of a task with a host.
[[nodiscard]] contender_result make_on_host(const task& t, const std::string& mechanism);
[[nodiscard]] contender_result make_host_rival(const task& t, std::string_view name);
// The host without media.
[[nodiscard]] contender_result make_host_limit(const task& t);
// Empty, where the build does not have the host.
std::vector<std::string> host_rival_names(std::string_view host);

}  // namespace stele::bench
