// set, hash_set: the keys of a map without values; set is ordered.
//
//   struct tags { using pool_resident = void; stele::set<stele::string> names; };
//   auto pool = stele::pool<tags>::open("tags.stele", {.create_size = 16 << 20});
//   auto fresh = pool->update([](tags& t) { return t.names.insert("red").second; });
//   auto all = pool->read([](const tags& t) { return t.names.size(); });  // set: O(n)
//   if (fresh && all) std::printf("inserted %d, now %zu\n", *fresh, *all);
//
// A set is a map whose values take no bytes. Nodes, costs, and the validity of references and
// iterators are those of map.h and hash_map.h. Members that need an order exist only if the map is
// ordered. A key cannot be changed in place.
#pragma once

#include <stele/hash_map.h>
#include <stele/map.h>

namespace stele {

namespace detail {

struct no_value {};

}  // namespace detail

template <class Memory>
struct element<detail::no_value, Memory> {
  using stored = detail::no_value;
  using view = detail::no_value;
  using value = detail::no_value;

  static void create(stored*, view) {}
  template <class Visit>
  static void visit_blocks(const stored&, Visit&) {}
};

// The keys of Map.
template <class Map>
class basic_set {
  static constexpr bool ordered = requires(const Map& m) { m.rbegin(); };
  using map_iterator = typename Map::const_iterator;

 public:
  using pool_resident = void;
  using key_type = typename Map::key_type;
  using value_type = key_type;
  using key_view = typename Map::key_view;
  using stored = const typename Map::key_stored;
  class iterator;
  using const_iterator = iterator;

  [[nodiscard]] std::size_t size() const { return map_.size(); }
  [[nodiscard]] bool empty() const { return map_.empty(); }
  [[nodiscard]] bool contains(key_view key) const { return map_.contains(key); }
  [[nodiscard]] std::size_t count(key_view key) const { return map_.count(key); }
  iterator find(key_view key) const { return map_.find(key); }
  // lower_bound: the first key not less than `key`. upper_bound: the first key greater than `key`.
  // range: the keys from `from` on that are less than `to`.
  iterator lower_bound(key_view key) const
    requires ordered
  {
    return map_.lower_bound(key);
  }
  iterator upper_bound(key_view key) const
    requires ordered
  {
    return map_.upper_bound(key);
  }
  item_range<iterator> range(key_view from, key_view to) const
    requires ordered
  {
    const auto r = map_.range(from, to);
    return {r.first, r.last};
  }

  // Inserts if the key is not there: {key, inserted?}.
  std::pair<iterator, bool> insert(key_view key) { return map_.insert(key, detail::no_value{}); }
  std::size_t erase(key_view key) { return map_.erase(key); }  // the number of keys erased, 0 or 1
  iterator erase(iterator at);                                 // returns the next key
  void clear() { map_.clear(); }                               // frees every block
  [[nodiscard]] std::size_t bucket_count() const
    requires(!ordered)
  {
    return map_.bucket_count();
  }
  // As for hash_map.
  void reserve(std::size_t count)
    requires(!ordered)
  {
    map_.reserve(count);
  }

  iterator begin() const { return map_.begin(); }
  iterator end() const { return map_.end(); }
  auto rbegin() const
    requires ordered
  {
    return std::make_reverse_iterator(end());
  }
  auto rend() const
    requires ordered
  {
    return std::make_reverse_iterator(begin());
  }
  // Calls f(const stored key&) on each key. O(n).
  template <class F>
  void for_each(F&& f) const {
    map_.for_each([&](stored& key, const detail::no_value&) { f(key); });
  }
  // As for hash_map, with f(const stored key&).
  template <class F>
  std::uint64_t scan(std::uint64_t cursor, F&& f) const
    requires(!ordered)
  {
    return map_.scan(cursor, [&](stored& key, const detail::no_value&) { f(key); });
  }

  // Calls visit(const void*) for every allocated block of the set.
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    map_.visit_blocks(visit);
  }
  // Errors: corrupt, as for the map.
  [[nodiscard]] result<> check() const { return map_.check(); }

 private:
  Map map_;
};

template <class K>
using set = basic_set<map<K, detail::no_value>>;
template <class K>
using hash_set = basic_set<hash_map<K, detail::no_value>>;

// The map's iterator; dereferencing gives the key.
template <class Map>
class basic_set<Map>::iterator {
 public:
  using value_type = key_type;
  using difference_type = std::ptrdiff_t;
  using reference = stored&;
  using pointer = stored*;
  using iterator_category = typename map_iterator::iterator_category;

  iterator() = default;
  iterator(map_iterator at) : at_(at) {}
  iterator(typename Map::iterator at) : at_(at) {}
  stored& operator*() const { return at_->first; }
  stored* operator->() const { return &at_->first; }
  iterator& operator++() {
    ++at_;
    return *this;
  }
  iterator& operator--()
    requires ordered
  {
    --at_;
    return *this;
  }
  iterator operator++(int) { return at_++; }
  iterator operator--(int)
    requires ordered
  {
    return at_--;
  }
  friend bool operator==(const iterator&, const iterator&) = default;

 private:
  friend basic_set;
  map_iterator at_;
};

template <class Map>
typename basic_set<Map>::iterator basic_set<Map>::erase(iterator at) {
  return map_iterator(map_.erase(at.at_));
}

}  // namespace stele
