// rbtree: keys toggled in a red-black tree.
#pragma once

#include <stele/map.h>
#include <workloads/toggle.h>

namespace stele::workloads {

struct rbtree_maps {
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
using rbtree_kind = toggle<rbtree_maps, N>;

}  // namespace stele::workloads
