// Workloads by name. A new workload is a source file, a line in entries.h and a line here; the same
// in apart/.
#include <workloads/entries.h>

#include <array>
#include <bit>

namespace stele::workloads {

namespace {

constexpr std::array entries = {
    &sps_entry,       &hash_entry,      &word_hash_entry, &rbtree_entry,    &bptree_entry,
    &kv_entry,        &sdg_entry,       &ssca2_entry,     &ycsb_entries[0], &ycsb_entries[1],
    &ycsb_entries[2], &ycsb_entries[3], &ycsb_entries[4], &ycsb_entries[5], &tpcc_entry,
    &linkbench_entry, &store_entry};

std::unexpected<error> invalid(std::string message) {
  return std::unexpected(error{errc::invalid_argument, std::move(message)});
}

result<> check_value_size(const workload_entry& k, std::size_t size, std::size_t largest_value) {
  const std::string said = "value size " + std::to_string(size) + ": give ";
  if (k.largest_value != 0) {
    if (size >= 1 && size <= k.largest_value) return {};
    return invalid(said + "one from 1 to " + std::to_string(k.largest_value));
  }
  if (std::has_single_bit(size) && size >= 8 && size <= largest_value) return {};
  return invalid(said + "a power of two from 8 to " + std::to_string(largest_value));
}

result<> check_parameters(const parameters& p) {
  if (p.keys == 0 || p.keys >= std::size_t{1} << 32) {
    return invalid(std::to_string(p.keys) + " keys: give a number from 1 to 2^32 - 1");
  }
  if (!(p.read_share >= 0 && p.read_share <= 1))
    return invalid("the share of reads is not between 0 and 1");
  if (p.choice == key_choice::zipf && !(p.zipf_theta > 0 && p.zipf_theta < 1)) {
    return invalid("the zipf skew theta is not between 0 and 1");
  }
  return {};
}

}  // namespace

result<const workload_entry*> find_workload(std::string_view name, const parameters& p,
                                            std::size_t largest_value) {
  for (const workload_entry* k : entries) {
    if (k->name != name) continue;
    if (auto ok = check_value_size(*k, p.value_size, largest_value); !ok)
      return std::unexpected(std::move(ok.error()));
    if (auto ok = check_parameters(p); !ok) return std::unexpected(std::move(ok.error()));
    return k;
  }
  std::string names;
  for (const std::string& known : workload_names()) names += (names.empty() ? "" : ", ") + known;
  return std::unexpected(
      error{errc::not_found, "no workload \"" + std::string(name) + "\"; there are " + names});
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const workload_entry* k : entries) names.emplace_back(k->name);
  return names;
}

result<std::unique_ptr<workload>> make_workload(std::string_view name, const parameters& p) {
  const auto k = find_workload(name, p);
  if (!k) return std::unexpected(k.error());
  if (!p.coalesce) return (*k)->make(p);
  if ((*k)->make_coalescing == nullptr)
    return invalid("the workload " + std::string(name) + " has no runs in coalescing memory");
  return (*k)->make_coalescing(p);
}

}  // namespace stele::workloads
