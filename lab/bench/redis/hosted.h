// A workload in this process that does to a pool what the module does for Redis' commands.
//
// A real server without a pool runs each transaction, and tells its commands (mirror.h). Those that
// change keys change the items of the pool, in one unit, by the same calls as the module; those
// that read read them. So everything that the laboratory counts of a pool, it counts of Redis'
// keys. The time of a transaction is the server's, and means nothing.
#pragma once

#include <bench/contender.h>

#include <functional>

namespace stele::bench::redis {

// Its server's folder is in the task's. Errors: unsupported.
[[nodiscard]] result<std::unique_ptr<workloads::workload>> make_hosted(const task& t);

// How often transactions of the task use each key: those at the start, and those that are made. A
// transaction uses a key once. As many transactions as keys. Errors: cancelled.
[[nodiscard]] result<std::vector<std::uint32_t>> count_uses(const task& t,
                                                            const std::function<bool()>& cancelled);

}  // namespace stele::bench::redis
