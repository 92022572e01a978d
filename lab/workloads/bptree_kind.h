// bptree: keys toggled in a b+ tree of 4 KiB nodes.
#pragma once

#include <stele/bptree.h>
#include <workloads/toggle.h>

namespace stele::workloads {

struct bptree_maps {
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
using bptree_kind = toggle<bptree_maps, N>;

}  // namespace stele::workloads
