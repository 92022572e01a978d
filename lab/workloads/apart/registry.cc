// Runs that are not on pools, by name. Parameters are checked as for pools.
#include <base/check.h>
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>

#include <algorithm>
#include <array>

namespace stele::workloads {

namespace {

constexpr std::array entries = {&sps_apart,     &hash_apart,    &word_hash_apart, &rbtree_apart,
                                &bptree_apart,  &kv_apart,      &sdg_apart,       &ssca2_apart,
                                &ycsb_apart[0], &ycsb_apart[1], &ycsb_apart[2],   &ycsb_apart[3],
                                &ycsb_apart[4], &ycsb_apart[5], &tpcc_apart,      &linkbench_apart,
                                &store_apart};

// The twin of a workload on pools.
const apart_entry& twin_of(const workload_entry& w) {
  const auto found = std::ranges::find(entries, w.name, &apart_entry::name);
  base::check(found != entries.end(), "a workload has no twin in ordinary memory");
  return **found;
}

}  // namespace

result<const apart_entry*> find_native_workload(std::string_view name, const parameters& p) {
  const auto w = find_workload(name, p, largest_native_value);
  if (!w) return std::unexpected(w.error());
  const apart_entry& twin = twin_of(**w);
  if (twin.make_native == nullptr)
    return base::fail(errc::invalid_argument,
                      "the workload " + std::string(name) + " has no native runs");
  if (p.coalesce)
    return base::fail(errc::invalid_argument,
                      "native runs are in ordinary memory, which does not coalesce");
  return &twin;
}

result<std::unique_ptr<volatile_run>> make_volatile(std::string_view name, const parameters& p) {
  const auto w = find_workload(name, p);
  if (!w) return std::unexpected(w.error());
  return twin_of(**w).make_volatile(p);
}

}  // namespace stele::workloads
