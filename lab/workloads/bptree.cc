// bptree: keys toggled in a b+ tree of 4 KiB nodes.
#include <stele/bptree.h>
#include <workloads/entries.h>
#include <workloads/native.h>
#include <workloads/toggle.h>

namespace stele::workloads {

namespace {

struct maps {
  static constexpr std::string_view name = "bptree";
  template <class V, class Memory>
  using map = basic_bptree<std::uint64_t, V, Memory>;

  template <class Map>
  static void prepare(Map&, std::uint64_t) {}
  template <class Map>
  static auto find(const Map& map, std::uint64_t key) {
    return map.find(key);
  }
};

template <std::size_t N>
using bptree = toggle<maps, N>;

}  // namespace

constinit const workload_entry bptree_entry = {"bptree", make_sized<workload, pool_run, bptree>,
                                               make_sized<volatile_run, plain_run, bptree>,
                                               make_native_sized<bptree>};

}  // namespace stele::workloads
