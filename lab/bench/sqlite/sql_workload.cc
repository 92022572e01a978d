// Transactions, checks, and the workloads by name.
#include <base/check.h>
#include <bench/sqlite/sql_workload.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <workloads/run.h>

#include <algorithm>

namespace stele::bench::sql {
namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<sql_workload> (*make)(const workloads::parameters& p);
};
constexpr entry entries[] = {
    {"ycsb-a", make_ycsb}, {"ycsb-b", make_ycsb},         {"ycsb-c", make_ycsb},
    {"ycsb-d", make_ycsb}, {"ycsb-e", make_ycsb},         {"ycsb-f", make_ycsb},
    {"tpcc", make_tpcc},   {"linkbench", make_linkbench}, {"store", make_store}};

}  // namespace

result<> session::apply(std::span<const operation> operations) {
  const bool alone = operations.size() == 1 && is_one_statement(operations.front());
  const transaction_kind kind = alone ? transaction_kind::one_statement
                                : workloads::only_reads(operations) ? transaction_kind::reads
                                                                    : transaction_kind::writes;
  auto done = db_->transaction(kind, [&]() -> result<> {
    attempt();
    for (const operation& op : operations)
      if (auto ran = run(op); !ran) return ran;
    return {};
  });
  if (done) committed();
  return done;
}

result<> sql_workload::check(connection& db) const {
  const auto sound = db.text("PRAGMA integrity_check");
  if (!sound) return std::unexpected(sound.error());
  if (*sound != "ok") return base::fail(errc::corrupt, "PRAGMA integrity_check says: " + *sound);
  for (const invariant& i : invariants()) {
    const auto violation = db.text(i.violations);
    if (!violation) return std::unexpected(violation.error());
    if (!violation->empty())
      return base::fail(errc::corrupt, fmt::format("{}: {}", i.sentence, *violation));
  }
  return {};
}

result<std::unique_ptr<sql_workload>> make_sql_workload(std::string_view name,
                                                        const workloads::parameters& p) {
  const auto valid = workloads::make_workload(name, p);
  if (!valid) return std::unexpected(valid.error());
  const auto* const found = std::ranges::find(entries, name, &entry::name);
  if (found == std::end(entries)) {
    std::vector<std::string_view> names;
    for (const entry& e : entries) names.push_back(e.name);
    return base::fail(errc::unsupported, fmt::format("the host sqlite runs {}, not '{}'",
                                                     fmt::join(names, ", "), name));
  }
  if (p.coalesce)
    return base::fail(errc::unsupported,
                      "the host sqlite decides where its rows are: it has no coalescing memory");
  return found->make(p);
}

}  // namespace stele::bench::sql
