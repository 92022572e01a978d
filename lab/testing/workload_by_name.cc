// This library has no workloads of its own: a plan brings the user's structure.
#include <explore/workload_by_name.h>

#include <base/check.h>

namespace stele::explore {

result<std::unique_ptr<workloads::workload>> make_explored_workload(std::string_view name,
                                                                    const workloads::parameters&) {
  return base::fail(errc::not_found, "no workload \"" + std::string(name) +
                                         "\": only a user's structure is explored");
}

}  // namespace stele::explore
