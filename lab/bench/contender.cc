// Shared by contenders: paths and sizes, and the rivals that this build has.
#include <bench/contender.h>
#include <bench/drive.h>
#include <bench/rivals/checkouts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pool/pool_file.h>
#include <pool/volatile_storage.h>
#include <tx/open.h>
#include <unistd.h>
#include <workloads/tpcc.h>

#include <algorithm>
#include <functional>

namespace stele::bench {

#ifdef STELE_HAVE_LIBPMEMOBJ
contender_result make_libpmemobj(const task& t);
contender_result make_libpmemobj_actions(const task& t);
#endif
#ifdef STELE_HAVE_LEVELDB
contender_result make_leveldb(const task& t);
#endif
#ifdef STELE_HAVE_ROCKSDB
contender_result make_rocksdb(const task& t);
#endif
#ifdef STELE_HAVE_LMDB
contender_result make_lmdb(const task& t);
#endif
#ifdef STELE_HAVE_TOKYOCABINET
contender_result make_tokyocabinet(const task& t);
#endif

namespace {

struct rival {
  std::string_view name;
  std::function<contender_result(const task& t)> make;
  std::vector<std::string_view> workloads;
};

std::vector<rival> rivals() {
  std::vector<rival> all = {
#ifdef STELE_HAVE_LIBPMEMOBJ
      {"libpmemobj", make_libpmemobj, {"sps", "hash", "rbtree", "store"}},
      {"libpmemobj-actions", make_libpmemobj_actions, {"sps", "hash", "rbtree", "store"}},
#endif
#ifdef STELE_HAVE_LEVELDB
      {"leveldb", make_leveldb, {"store"}},
#endif
#ifdef STELE_HAVE_ROCKSDB
      {"rocksdb", make_rocksdb, {"store"}},
#endif
#ifdef STELE_HAVE_LMDB
      {"lmdb", make_lmdb, {"store"}},
#endif
#ifdef STELE_HAVE_TOKYOCABINET
      {"tokyocabinet", make_tokyocabinet, {"store"}},
#endif
  };
  if (has_viper()) all.push_back({"viper", make_viper, {"store"}});
  for (const std::string_view name : durabletx_rivals())
    all.push_back({name,
                   [name](const task& t) { return make_durabletx(t, name); },
                   {"sps", "hash", "rbtree"}});
  return all;
}

}  // namespace

contender_result make_rival(const task& t, std::string_view name) {
  for (const rival& r : rivals())
    if (r.name == name) return r.make(t);
  return std::unexpected(
      error{errc::not_found, fmt::format("no rival '{}' in this build; it has: {}", name,
                                         fmt::join(rival_names(), ", "))});
}

std::vector<std::string> rival_names() {
  std::vector<std::string> names;
  for (const rival& r : rivals()) names.emplace_back(r.name);
  return names;
}

std::vector<std::string> rivals_for(std::string_view workload) {
  std::vector<std::string> names;
  for (const rival& r : rivals())
    if (std::ranges::find(r.workloads, workload) != r.workloads.end()) names.emplace_back(r.name);
  return names;
}

std::uint64_t live_bytes_of(const task& t) {
  const auto& p = t.parameters;
  if (t.workload == "sps") return p.keys * p.value_size;
  if (t.workload.starts_with("ycsb-")) return p.keys * (p.value_size + 8);
  if (t.workload == "tpcc") return workloads::tpcc::live_bytes(workloads::tpcc::shape(p));
  if (t.workload == "linkbench")
    return p.keys / 2 * (p.value_size + 12) + p.keys / 8 * p.value_size;
  if (t.workload == "store") return p.keys / 8 * 7 * (p.value_size + 8);
  return p.keys / 2 * (p.value_size + (t.workload == "kv" ? 16 : 8));
}

durability_level durability_of(const task& t, const std::string& file) {
  if (t.media == "file") return detail::durability_of_path(t.dir);
  if (t.media == "process" || !storage::is_direct_access(file)) return durability_level::process;
  return t.media == "eadr" ? durability_level::power_with_cache : durability_level::power;
}

std::string pool_path(const task& t, std::string_view name) {
  return fmt::format("{}/compare-{}-{}.stele", t.dir, getpid(), name);
}

std::vector<base::rng> make_generators(const task& t) {
  std::vector<base::rng> generators;
  for (unsigned i = 0; i < t.threads; ++i) generators.emplace_back(base::mix(t.seed) + i);
  return generators;
}

}  // namespace stele::bench
