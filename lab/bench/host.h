// Hosts: programs that store their data in a pool, in place of a structure of Stele's: `sqlite`, in
// lab/bench/sqlite, and `redis`, in lab/bench/redis.
//
// A task names its host. Then its operations are transactions of the host, on Stele's rows by the
// host's adapter to pools, on its rivals' and its limit's by the host itself.
#pragma once

#include <bench/contender.h>

#include <functional>

namespace stele::bench {

// Errors of all: not_found (no such host, no such rival), unsupported (the build does not have the
// host, or the host not this task).

// A workload in this process that does to a pool what the host does. Of sqlite it is that of
// Stele's row; of redis, whose server is another process, the commands on the pool alone.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t);
// Stele's row of a task with a host.
[[nodiscard]] contender_result make_on_host(const task& t, const std::string& mechanism);
[[nodiscard]] contender_result make_host_rival(const task& t, std::string_view name);
// The host without media.
[[nodiscard]] contender_result make_host_limit(const task& t);
// How often transactions of the task use each object of the host; see redis/hosted.h. Errors:
// unsupported, of hosts that do not tell.
[[nodiscard]] result<std::vector<std::uint32_t>> count_host_uses(
    const task& t, const std::function<bool()>& cancelled);
// Empty, where the build does not have the host.
std::vector<std::string> host_rival_names(std::string_view host);

}  // namespace stele::bench
