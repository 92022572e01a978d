// rbtree: keys toggled in a red-black tree.
#include <stele/map.h>
#include <workloads/entries.h>
#include <workloads/native.h>
#include <workloads/toggle.h>

namespace stele::workloads {

namespace {

struct maps {
  static constexpr std::string_view name = "rbtree";
  template <class V, class Memory>
  using map = basic_map<std::uint64_t, V, Memory>;

  template <class Map>
  static void prepare(Map&, std::uint64_t) {}
  template <class Map>
  static auto find(const Map& map, std::uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }
};

template <std::size_t N>
using rbtree = toggle<maps, N>;

}  // namespace

constinit const workload_entry rbtree_entry = {
    "rbtree", make_sized<workload, pool_run, rbtree>, make_sized<volatile_run, plain_run, rbtree>,
    make_native_sized<rbtree>, make_sized<workload, coalescing_run, rbtree>};

}  // namespace stele::workloads
