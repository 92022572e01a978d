// hash_map: an unordered map of chained nodes, over a bucket array that doubles. Nodes never move.
//
//   struct stock { using pool_resident = void; stele::hash_map<stele::string, int> counts; };
//   auto pool = stele::pool<stock>::open("stock.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](stock& s) { s.counts["bolt"] += 100; });
//   auto get = pool->read([](const stock& s) { return s.counts.at("bolt").load(); });
//   if (get) std::printf("%d bolts\n", *get);
//
// An insert writes the bucket's word and a new node. An erase writes the bucket's word and, unless
// the node is first in its chain, its predecessor's link. The bucket's word packs the distance to
// the first node with the chain's length. So there is no item counter on which transactions would
// conflict; size() adds up the bucket words. Growth doubles the buckets at once and moves no item.
// The first change that reaches a new bucket splits it off its parent (the bucket whose number
// lacks the top bit); until then lookups go to the parent. This is the recursive split of Shalev
// and Shavit ("Split-Ordered Lists", 2006). Departure: nodes are relinked to the new bucket's
// chain; there is no shared list and no dummy node.
//
// The interface is that of std::unordered_map. Zeroed memory is an empty map. Call members in a
// transaction of the pool that holds the map, changing members in an update; they are rolled back
// with it. References to an item are valid until it is erased. Iterators and entries are valid
// until the next change of the map; iterators of other items survive erase(iterator). Members that
// may allocate throw failure(errc::full). Costs are expected costs.
#pragma once

#include <stele/detail/bounded_memory.h>
#include <stele/detail/pipeline.h>
#include <stele/detail/segment_sizes.h>
#include <stele/element.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace stele {

template <class K, class V, class Memory>
class basic_hash_map {
  using keys = element<K, Memory>;
  using values = element<V, Memory>;
  struct node;
  class bucket_head;

 public:
  using pool_resident = void;
  using key_type = K;
  using mapped_type = V;
  using value_type = map_item<K, V, Memory>;
  using key_view = typename keys::view;
  using mapped_view = typename values::view;
  using key_stored = typename keys::stored;
  using mapped_stored = typename values::stored;

  template <class Item>
  class basic_iterator;
  using iterator = basic_iterator<value_type>;
  using const_iterator = basic_iterator<const value_type>;
  class entry;

  basic_hash_map() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty map
  ~basic_hash_map() {
    run_destructor([&] { free_blocks(); });
  }
  basic_hash_map(const basic_hash_map&) = delete;
  basic_hash_map& operator=(const basic_hash_map&) = delete;

  // O(buckets): sums the bucket words.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return begin() == end(); }  // O(buckets) if empty
  [[nodiscard]] std::size_t bucket_count() const { return shape().slots(); }

  // O(1).
  iterator find(key_view key) { return search(key); }
  const_iterator find(key_view key) const { return search(key); }
  [[nodiscard]] bool contains(key_view key) const { return find_node(key) != nullptr; }
  [[nodiscard]] std::size_t count(key_view key) const { return contains(key); }
  // Looks up many keys, so that their cache misses overlap: calls each(i, const mapped_stored*)
  // for wanted[i], in order; null: the key is not there. `each` must not change the map. What
  // `each` throws ends the call. O(1) for each key.
  template <class Each>
  void find_many(std::span<const std::remove_cvref_t<key_view>> wanted, Each&& each) const;
  // The value of a key. Throws failure(errc::not_found) if the key is not there.
  mapped_stored& at(key_view key) { return node_at(key)->item.second; }
  const mapped_stored& at(key_view key) const { return node_at(key)->item.second; }
  // The value of a key. If the key is not there, inserts it with a zero value or an empty
  // container.
  mapped_stored& operator[](key_view key) { return try_emplace(key).first->second; }

  // The position of a key, searched once, to test, insert or erase there. O(1).
  entry find_entry(key_view key) { return entry(*this, key); }

  // Inserts if the key is not there: {item, inserted?}. O(1); when the buckets double, also zeroes
  // O(buckets) of memory.
  std::pair<iterator, bool> insert(key_view key, mapped_view value);
  std::pair<iterator, bool> insert_or_assign(key_view key, mapped_view value);
  std::pair<iterator, bool> emplace(key_view key, mapped_view value) { return insert(key, value); }
  std::pair<iterator, bool> try_emplace(key_view key, mapped_view value) {
    return insert(key, value);
  }
  std::pair<iterator, bool> try_emplace(key_view key);  // a zero value or empty container
  // The number of items erased, 0 or 1. O(1).
  std::size_t erase(key_view key);
  // Returns the next item. O(1).
  iterator erase(const_iterator at);
  // Erases every item and frees every block, the buckets too. O(n + buckets).
  void clear();
  // Makes room for `count` items, so that inserting them does not double the buckets. An empty map
  // gets one block of that many buckets, rounded up to a power of two. O(count).
  void reserve(std::size_t count);

  iterator begin() { return first_item<iterator>(); }
  const_iterator begin() const { return first_item<const_iterator>(); }
  iterator end() { return iterator(*this, nullptr); }
  const_iterator end() const { return const_iterator(*this, nullptr); }
  // Calls f(const stored key&, const stored value&) on each item, in no order; faster than a loop,
  // since the misses of items overlap. `f` must not change the map. O(n + buckets).
  template <class F>
  void for_each(F&& f) const;
  // One step of a walk in portions, between which the map may change: calls f as for_each does on
  // the items of one bucket, and returns the cursor of the next step. The walk begins and ends with
  // 0. An item that is there from its begin to its end is visited at least once; exactly once if
  // the buckets do not double meanwhile. `f` must not change the map. O(1).
  template <class F>
  std::uint64_t scan(std::uint64_t cursor, F&& f) const;

  // Calls visit(const void*) for every allocated block of the map.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if an item is not in its key's bucket, a key occurs twice, or a chain's length
  // is wrong.
  [[nodiscard]] result<> check() const;

 private:
  static constexpr std::size_t min_buckets = 8;
  static constexpr std::size_t max_segments = 32;
  // An insert that scanned this many nodes checks whether there are too few buckets.
  static constexpr std::size_t max_chain_length = 6;
  static constexpr std::size_t load_sample_buckets = 64;  // buckets that this check samples

  using sizes = detail::segment_sizes;  // of the buckets
  struct chain {
    node* first = nullptr;
    std::size_t length = 0;
    bool split = false;
  };
  struct position {
    bucket_head* bucket = nullptr;
    chain nodes;
    node* before = nullptr;  // the node before `found` in the chain; null: `found` is first
    node* found = nullptr;
    std::size_t nodes_scanned = 0;
  };

  using chain_check = detail::chain_check<Memory>;
  [[gnu::always_inline]] sizes shape() const {
    const sizes s{sizes_.load()};
    if constexpr (detail::is_guarded<Memory>)
      if (!s.valid(max_segments)) detail::throw_bad_pointer();
    return s;
  }
  static std::size_t parent_of(std::size_t bucket) { return bucket ^ std::bit_floor(bucket); }
  [[gnu::always_inline]] bucket_head* bucket_at(sizes s, std::size_t bucket) const {
    const std::size_t segment = s.segment_of(bucket);
    bucket_head* const first = segment_[segment].load();
    if constexpr (detail::is_guarded<Memory>)
      if (first == nullptr) detail::throw_bad_pointer();
    return first + (bucket - s.start_of(segment));
  }
  static bool is_split(sizes s, std::size_t bucket, const chain& c) {
    return bucket < s.first_segment_slots() || c.split;
  }

  chain find_chain(std::uint64_t hash) const;
  std::size_t bucket_of(const node* n) const;
  static node* find_in_chain(node* first, key_view key);
  node* find_node(key_view key) const;
  node* node_at(key_view key) const;
  const_iterator search(key_view key) const { return const_iterator(*this, find_node(key)); }
  iterator search(key_view key) { return iterator(*this, find_node(key)); }
  position find_position(key_view key);
  node* insert_node(position& p, node* n, key_view key);
  void erase_at(position& p);

  bucket_head* split_bucket(sizes s, std::size_t bucket);
  void split_or_grow(std::size_t bucket);
  bool is_overloaded(sizes s, std::size_t bucket) const;
  void grow();
  void make_first_segment(std::size_t count);

  template <class Iterator>
  Iterator first_item() const;
  template <class F>
  void for_each_chain(F&& f) const;
  void free_blocks();
  [[nodiscard]] result<> check_segments(sizes s) const;
  [[nodiscard]] result<> check_chain(sizes s, std::size_t bucket, const chain& c) const;
  using hashed_node = std::pair<std::uint64_t, const node*>;
  static bool has_key_twice(std::vector<hashed_node>& all);

  typename Memory::template field<std::uint64_t> sizes_;
  typename Memory::template field<bucket_head*> segment_[max_segments];
};

template <class K, class V>
using hash_map = basic_hash_map<K, V, pool_memory>;

template <class K, class V, class Memory>
struct basic_hash_map<K, V, Memory>::node {
  using pool_resident = void;
  typename Memory::template field<node*> next;
  value_type item;

  template <class... Arguments>
  explicit node(Arguments&&... arguments)
      : next(nullptr), item(std::forward<Arguments>(arguments)...) {}
};

// A bucket's word. Bits 3 to 47: distance to the first node in bytes (0: none). Bit 0: the bucket
// has been split off its parent. Bits 48 to 63: the chain's length; 65535 means that many or more.
template <class K, class V, class Memory>
class basic_hash_map<K, V, Memory>::bucket_head {
  static constexpr std::uint64_t distance_bits = 0x0000'FFFF'FFFF'FFF8;
  static constexpr std::size_t max_length = 65535;

 public:
  [[gnu::always_inline]] chain load() const {  // returned in registers, not through memory
    const std::uint64_t word = word_.load();
    chain c{nullptr, word >> 48, (word & 1) != 0};
    if ((word & distance_bits) == 0) return c;
    const std::int64_t distance = static_cast<std::int64_t>((word & distance_bits) << 16) >> 16;
    c.first = reinterpret_cast<node*>(detail::target_in_heap(this, distance));
    if (c.length == max_length) [[unlikely]]
      c.length = count(c.first);
    return c;
  }
  void store(const chain& c) {
    const std::uint64_t distance = c.first == nullptr ? 0
                                                      : reinterpret_cast<std::uintptr_t>(c.first) -
                                                            reinterpret_cast<std::uintptr_t>(this);
    word_ = (distance & distance_bits) | std::uint64_t{std::min(c.length, max_length)} << 48 |
            std::uint64_t{c.split};
  }

 private:
  static std::size_t count(const node* n) {
    std::size_t length = 0;
    for (detail::chain_check<Memory> c; n != nullptr; n = n->next) {
      c.step(n);
      ++length;
      if constexpr (detail::is_bounded<Memory>)
        if (length > detail::heap_bytes() / sizeof(node))
          throw failure({errc::corrupt, "hash map: a chain leads in a circle"});
    }
    return length;
  }
  link_field<Memory, std::uint64_t> word_;
};

}  // namespace stele

#include <stele/detail/hash_map_inl.h>
