// Calls the host that a task names, if the build has it.
#include <base/check.h>
#include <bench/host.h>
#include <fmt/format.h>

#ifdef STELE_HAVE_REDIS
#include <bench/redis/hosted.h>
#include <bench/redis/server_contender.h>
#endif
#ifdef STELE_HAVE_SQLITE
#include <bench/sqlite/file_contender.h>
#include <bench/sqlite/hosted.h>
#endif

namespace stele::bench {
namespace {

// Null where the build does not have the host.
struct host {
  std::string_view name, needs;
  result<std::unique_ptr<workloads::workload>> (*workload)(const task& t) = nullptr;
  contender_result (*on_pool)(const task& t, const std::string& mechanism) = nullptr;
  contender_result (*rival)(const task& t, std::string_view name) = nullptr;
  contender_result (*limit)(const task& t) = nullptr;
  std::vector<std::string> (*rival_names)() = nullptr;
  result<std::vector<std::uint32_t>> (*uses)(const task& t,
                                             const std::function<bool()>& cancelled) = nullptr;
};

#ifdef STELE_HAVE_SQLITE
result<std::unique_ptr<workloads::workload>> sqlite_workload(const task& t) {
  return sql::make_hosted(t.workload, t.parameters);
}
contender_result sqlite_on_pool(const task& t, const std::string& mechanism) {
  auto w = sqlite_workload(t);
  if (!w) return std::unexpected(std::move(w.error()));
  return make_stele_with(t, mechanism, std::move(*w));
}
#endif
constexpr host hosts[] = {
#ifdef STELE_HAVE_SQLITE
    {"sqlite", "", sqlite_workload, sqlite_on_pool, sql::make_on_file, sql::make_in_memory,
     sql::file_contender_names},
#else
    {"sqlite", "SQLite's headers (Debian: libsqlite3-dev)"},
#endif
#ifdef STELE_HAVE_REDIS
    {"redis", "", redis::make_hosted, redis::make_with_module, redis::make_with_files,
     redis::make_without_files, redis::file_contender_names, redis::count_uses},
#else
    {"redis", "hiredis (Debian: libhiredis-dev)"},
#endif
};

result<host> host_of(const task& t) {
  for (const host& h : hosts) {
    if (h.name != t.host) continue;
    if (h.on_pool != nullptr) return h;
    return base::fail(errc::unsupported,
                      fmt::format("this program was built without {}, so it cannot be the host; "
                                  "install {} and build again",
                                  h.name, h.needs));
  }
  return base::fail(errc::not_found,
                    fmt::format("there is no host '{}'; choose sqlite or redis", t.host));
}

}  // namespace

result<std::unique_ptr<workloads::workload>> make_hosted_workload(const task& t) {
  const auto h = host_of(t);
  return h ? h->workload(t) : std::unexpected(h.error());
}

contender_result make_on_host(const task& t, const std::string& mechanism) {
  const auto h = host_of(t);
  return h ? h->on_pool(t, mechanism) : std::unexpected(h.error());
}

contender_result make_host_rival(const task& t, std::string_view name) {
  const auto h = host_of(t);
  return h ? h->rival(t, name) : std::unexpected(h.error());
}

contender_result make_host_limit(const task& t) {
  const auto h = host_of(t);
  return h ? h->limit(t) : std::unexpected(h.error());
}

result<std::vector<std::uint32_t>> count_host_uses(const task& t,
                                                   const std::function<bool()>& cancelled) {
  const auto h = host_of(t);
  if (!h) return std::unexpected(h.error());
  if (h->uses == nullptr)
    return base::fail(errc::unsupported,
                      fmt::format("the host {} does not tell what it uses", h->name));
  return h->uses(t, cancelled);
}

std::vector<std::string> host_rival_names(std::string_view name) {
  task t;
  t.host = name;
  const auto h = host_of(t);
  return h ? h->rival_names() : std::vector<std::string>();
}

}  // namespace stele::bench
