// hash: keys toggled in a hash map with as many buckets as keys, so chains stay short and never
// move. word_hash: the same in a word_map if values have 8 bytes.
#include <stele/hash_map.h>
#include <stele/word_map.h>
#include <workloads/entries.h>
#include <workloads/native.h>
#include <workloads/toggle.h>

namespace stele::workloads {

namespace {

struct maps {
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
using hash = toggle<maps, N>;

struct word_maps : maps {
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
using word_hash = std::conditional_t<N == 8, toggle<word_maps, 8>, hash<N>>;

}  // namespace

constinit const workload_entry hash_entry = {
    "hash", make_sized<workload, pool_run, hash>, make_sized<volatile_run, plain_run, hash>,
    make_native_sized<hash>, make_sized<workload, coalescing_run, hash>};

constinit const workload_entry word_hash_entry = {
    "word_hash", make_sized<workload, pool_run, word_hash>,
    make_sized<volatile_run, plain_run, word_hash>, nullptr};

}  // namespace stele::workloads
