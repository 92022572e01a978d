// Calls the host that a task names, if the build has it.
#include <base/check.h>
#include <bench/host.h>
#include <fmt/format.h>

#ifdef STELE_HAVE_SQLITE
#include <bench/sqlite/file_contender.h>
#include <bench/sqlite/hosted.h>
#endif

namespace stele::bench {
namespace {

result<> check_host(const task& t) {
  if (t.host != "sqlite")
    return base::fail(errc::not_found, fmt::format("there is no host '{}'; choose sqlite", t.host));
#ifndef STELE_HAVE_SQLITE
  return base::fail(errc::unsupported,
                    "this program was built without SQLite, so it cannot be the host; install its "
                    "headers (Debian: libsqlite3-dev) and build again");
#else
  return {};
#endif
}

}  // namespace

#ifdef STELE_HAVE_SQLITE
result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t) {
  if (auto there = check_host(t); !there) return std::unexpected(std::move(there.error()));
  return sql::make_hosted(t.workload, t.parameters);
}

contender_result make_host_rival(const task& t, std::string_view name) {
  if (auto there = check_host(t); !there) return std::unexpected(std::move(there.error()));
  return sql::make_on_file(t, name);
}

contender_result make_host_limit(const task& t) {
  if (auto there = check_host(t); !there) return std::unexpected(std::move(there.error()));
  return sql::make_in_memory(t);
}

std::vector<std::string> host_rival_names() {
  return sql::file_contender_names();
}
#else
result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t) {
  return std::unexpected(check_host(t).error());
}

contender_result make_host_rival(const task& t, std::string_view) {
  return std::unexpected(check_host(t).error());
}

contender_result make_host_limit(const task& t) {
  return std::unexpected(check_host(t).error());
}

std::vector<std::string> host_rival_names() {
  return {};
}
#endif

}  // namespace stele::bench
