// Workloads by name. A new one is a source file, a line in kinds.h and one here.
#include <workloads/kinds.h>
#include <workloads/native.h>

#include <array>
#include <bit>

namespace stele::workloads {

namespace {

constexpr std::array kinds = {&sps_kind,      &hash_kind,     &rbtree_kind,   &bptree_kind,   &kv_kind,
                              &sdg_kind,      &ssca2_kind,    &ycsb_kinds[0], &ycsb_kinds[1], &ycsb_kinds[2],
                              &ycsb_kinds[3], &ycsb_kinds[4], &ycsb_kinds[5], &tpcc_kind,     &linkbench_kind,
                              &store_kind};

std::unexpected<error> invalid(std::string message) {
  return std::unexpected(error{errc::invalid_argument, std::move(message)});
}

result<> check_value_size(const kind& k, std::size_t size, std::size_t largest_value) {
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
  if (!(p.read_share >= 0 && p.read_share <= 1)) return invalid("the share of reads is not between 0 and 1");
  if (p.choice == key_choice::zipf && !(p.zipf_theta > 0 && p.zipf_theta < 1)) {
    return invalid("the zipf skew theta is not between 0 and 1");
  }
  return {};
}

result<const kind*> find_kind(std::string_view name, const parameters& p, std::size_t largest_value = 4096) {
  for (const kind* k : kinds) {
    if (k->name != name) continue;
    if (auto sound = check_value_size(*k, p.value_size, largest_value); !sound) return std::unexpected(std::move(sound.error()));
    if (auto sound = check_parameters(p); !sound) return std::unexpected(std::move(sound.error()));
    return k;
  }
  std::string names;
  for (const std::string& known : workload_names()) names += (names.empty() ? "" : ", ") + known;
  return std::unexpected(error{errc::not_found, "no workload \"" + std::string(name) + "\"; there are " + names});
}

}  // namespace

result<const kind*> find_native_kind(std::string_view name, const parameters& p) {
  auto k = find_kind(name, p, largest_native_value);
  if (k && (*k)->make_native == nullptr) return invalid("the workload " + std::string(name) + " has no native runs");
  if (k && p.coalesce) return invalid("native runs are in ordinary memory, which does not coalesce");
  return k;
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const kind* k : kinds) names.emplace_back(k->name);
  return names;
}

result<std::unique_ptr<workload>> make_workload(std::string_view name, const parameters& p) {
  const auto k = find_kind(name, p);
  if (!k) return std::unexpected(k.error());
  if (!p.coalesce) return (*k)->make(p);
  if ((*k)->make_coalescing == nullptr) return invalid("the workload " + std::string(name) + " has no runs in coalescing memory");
  return (*k)->make_coalescing(p);
}

result<std::unique_ptr<volatile_run>> make_volatile(std::string_view name, const parameters& p) {
  const auto k = find_kind(name, p);
  if (!k) return std::unexpected(k.error());
  return (*k)->make_volatile(p);
}

}  // namespace stele::workloads
