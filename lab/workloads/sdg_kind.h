// sdg: edges toggled in a scalable graph. A key is an edge: key modulo the number of vertices is
// its source, the rest determines its target.
//
// There is a vertex for every 16 keys (but at least 32 if there are enough keys), so a vertex has
// eight edges on average.
#pragma once

#include <workloads/graph.h>
#include <workloads/toggle.h>

namespace stele::workloads {

// The graph as a map from keys to values.
template <class V, class Memory>
class edge_map : public basic_graph<V, Memory> {
  using graph = basic_graph<V, Memory>;

 public:
  class entry {
   public:
    entry(edge_map& map, std::uint64_t key)
        : map_(map), to_(map.target(key)), place_(map.find(key % map.vertices(), to_)) {}
    bool exists() const { return place_.found != nullptr; }
    void insert(typename graph::mapped_view value) {
      map_.graph::insert(*place_.from, to_, 0, value);
    }
    void erase() { map_.graph::erase(place_); }

   private:
    edge_map& map_;
    std::uint32_t to_;
    typename graph::edge_position place_;
  };

  void prepare(std::uint64_t keys) {
    this->make_vertices(std::max(std::min<std::uint64_t>(keys, 32), keys / 16));
  }
  entry find_entry(std::uint64_t key) { return entry(*this, key); }
  void insert(std::uint64_t key, typename graph::mapped_view value) {
    find_entry(key).insert(value);
  }  // the key must not be there

  // Distinct for the keys of one vertex, since these are fewer than the vertices.
  std::uint32_t target(std::uint64_t key) const {
    const std::uint64_t n = this->vertices();
    return static_cast<std::uint32_t>((key % n + 1 + key / n) % n);
  }
  template <class F>
  void for_each(F&& f) const {
    const std::uint64_t n = this->vertices();
    this->for_each_edge([&](std::uint64_t from, const auto& e) {
      f((e.to + 2 * n - from - 1) % n * n + from, e.value);
    });
  }
};

struct sdg_maps {
  static constexpr std::string_view name = "sdg";
  template <class V, class Memory>
  using map = edge_map<V, Memory>;

  template <class Map>
  static void prepare(Map& map, std::uint64_t keys) {
    map.prepare(keys);
  }
  template <class Map>
  static auto find(const Map& map, std::uint64_t key) -> const typename Map::mapped_stored* {
    const auto p = map.find(key % map.vertices(), map.target(key));
    return p.found == nullptr ? nullptr : &p.found->value;
  }
};

template <std::size_t N>
using sdg_kind = toggle<sdg_maps, N>;

}  // namespace stele::workloads
