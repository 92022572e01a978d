// hash: keys toggled in a hash map with as many buckets as keys, so chains stay short and never
// move. word_hash: the same in a word_map if values have 8 bytes.
#pragma once

#include <stele/hash_map.h>
#include <stele/word_map.h>
#include <workloads/toggle.h>

namespace stele::workloads {

struct hash_maps {
  static constexpr std::string_view name = "hash";
  template <class V, class Memory>
  using map = basic_hash_map<std::uint64_t, V, Memory>;

  template <class Map>
  static void prepare(Map& map, std::uint64_t keys) {
    map.reserve(keys);
  }
  template <class Map>
  static auto find(const Map& map, std::uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }
};

template <std::size_t N>
using hash_kind = toggle<hash_maps, N>;

struct word_hash_maps : hash_maps {
  static constexpr std::string_view name = "word_hash";
  template <class V, class Memory>
  using map = basic_word_map<std::uint64_t, V, Memory>;

  template <class Map>
  static void prepare(Map& map, std::uint64_t keys) {
    map.reserve(keys / 2);  // half of the keys are there
  }
  template <class Map>
  static auto find(const Map& map, std::uint64_t key) {
    return map.find(key);
  }
};

template <std::size_t N>
using word_hash_kind = std::conditional_t<N == 8, toggle<word_hash_maps, 8>, hash_kind<N>>;

}  // namespace stele::workloads
