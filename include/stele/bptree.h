// bptree: an ordered map as a B+ tree with nodes of 4 KiB: 200 pairs of 8-byte keys and values.
//
//   struct series { using pool_resident = void; stele::bptree<std::uint64_t, double> points; };
//   auto pool = stele::pool<series>::open("series.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](series& s) { s.points.insert_or_assign(1700000000, 21.5); });
//   auto sum = pool->read([](const series& s) { double all = 0;
//     s.points.for_each([&](std::uint64_t, const auto& v) { all += v.load(); }); return all; });
//
// A leaf does not sort its pairs. One byte per slot holds a fingerprint of the slot's key (0:
// free), as in the FPTree of Oukid et al. (SIGMOD 2016); here the fingerprints also replace the
// FPTree's bitmap. So an insert into a leaf stores key, value and one word of fingerprints, and an
// erase stores one word; a sorted leaf would shift a hundred pairs. A lookup compares fingerprints,
// then the few keys with a matching fingerprint. Inner nodes are sorted. The rest follows Comer
// ("The Ubiquitous B-Tree", 1979). Departure: a node other than the root is at least a quarter
// full, and joins a sibling only if the two fill at most three quarters of a node, so that mixed
// inserts and erases do not split and join the same nodes repeatedly.
//
// Keys are storable values ordered by <=>. A value of more than 8 bytes, or a container, has its
// own block, so that leaves keep many pairs. Zeroed memory is an empty tree. Call members in a
// transaction of the pool that holds the tree, changing members in an update; they are rolled back
// with it. Iterators, entries and references are valid until the next change of the tree; a
// reference to a value in its own block is valid until its pair is erased. Members that allocate
// throw failure(errc::full). There is no counter of pairs, because every insert and erase would
// conflict on it; size() counts.
#pragma once

#include <stele/element.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace stele {

// The number of pairs in a node of 4 KiB: at most 200, and a multiple of 8.
template <class K>
inline constexpr std::size_t bptree_pairs =
    std::min<std::size_t>(200, (4096 - 64) / (sizeof(K) + 9) / 8 * 8);

template <class K, class V, class Memory, std::size_t Pairs = bptree_pairs<K>>
class basic_bptree {
  static_assert(storable_value<K>,
                "the keys of a b+ tree are plain values: use stele::map for strings");
  static_assert(Pairs >= 8 && Pairs % 8 == 0,
                "a b+ tree's key is too large for eight of them to fit a node");
  using keys = element<K, Memory>;
  using values = element<V, Memory>;
  struct leaf;
  struct inner;
  struct box;

 public:
  using pool_resident = void;
  using key_type = K;
  using mapped_type = V;
  using key_view = typename keys::view;
  using mapped_view = typename values::view;
  using mapped_stored = typename values::stored;

  // What an iterator of the tree refers to: a copy of the key, and the stored value.
  template <class Stored>
  struct basic_item {
    K first;
    Stored& second;
    const basic_item* operator->() const { return this; }
  };
  template <class Stored>
  class basic_iterator;
  using iterator = basic_iterator<mapped_stored>;
  using const_iterator = basic_iterator<const mapped_stored>;
  class entry;

  basic_bptree() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty tree
  ~basic_bptree() {
    run_destructor([&] { free_blocks(root_, height_); });
  }
  basic_bptree(const basic_bptree&) = delete;
  basic_bptree& operator=(const basic_bptree&) = delete;

  [[nodiscard]] std::size_t size() const;  // O(leaves)
  [[nodiscard]] bool empty() const { return root_.load() == nullptr; }

  // The stored value, or null. O(log n), as are all members below that name no cost.
  mapped_stored* find(key_view key);
  const mapped_stored* find(key_view key) const {
    return const_cast<basic_bptree*>(this)->find(key);
  }
  [[nodiscard]] bool contains(key_view key) const { return find(key) != nullptr; }
  // Looks up many keys, so that their cache misses overlap: calls each(i, const mapped_stored*)
  // for wanted[i], in order; null: the key is not there. `each` must not change the tree. What
  // `each` throws ends the call. O(log n) for each key.
  template <class Each>
  void find_many(std::span<const K> wanted, Each&& each) const;

  // The position of a key, searched once, to test, insert or erase there.
  entry find_entry(key_view key) { return entry(*this, key); }

  // Inserts if the key is not there: {stored value, inserted?}.
  std::pair<mapped_stored*, bool> insert(key_view key, mapped_view value);
  std::pair<mapped_stored*, bool> emplace(key_view key, mapped_view value) {
    return insert(key, value);
  }
  std::pair<mapped_stored*, bool> try_emplace(key_view key, mapped_view value) {
    return insert(key, value);
  }
  std::pair<mapped_stored*, bool> insert_or_assign(key_view key, mapped_view value);
  std::size_t erase(key_view key);  // the number of pairs erased, 0 or 1
  void clear();                     // O(n); frees every block

  // In key order. Entering a leaf sorts it and costs O(pairs log pairs); other steps cost O(1).
  iterator begin() { return iterator(first_leaf()); }
  const_iterator begin() const { return const_iterator(first_leaf()); }
  std::default_sentinel_t end() const { return {}; }
  // The first pair with a key not less than `key`.
  iterator lower_bound(key_view key) { return bound<iterator>(key); }
  const_iterator lower_bound(key_view key) const { return bound<const_iterator>(key); }
  // Calls f(key, const stored value&) on each pair in key order. O(n log pairs).
  template <class F>
  void for_each(F&& f) const {
    for (auto it = begin(); it != end(); ++it) f((*it).first, (*it).second);
  }

  // Calls visit(const void*) for every allocated block of the tree.
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    visit_subtree(root_, height_, visit);
  }
  // Errors: corrupt, if key order, fill, fingerprints, heights or the chain of leaves break an
  // invariant.
  [[nodiscard]] result<> check() const;

  static constexpr std::size_t node_bytes = 4096;

 private:
  static constexpr std::size_t fingerprint_words = Pairs / 8;  // words of fingerprints in a leaf
  // Minimum of pairs (in an inner node: keys) in a node other than the root.
  static constexpr std::size_t min_pairs = Pairs / 4;
  static constexpr std::size_t merge_limit = Pairs / 4 * 3;
  static constexpr std::size_t max_height = 64;
  static constexpr bool boxed =
      !std::is_same_v<mapped_stored, typename Memory::template field<V>> || sizeof(V) > 8;

  using fingerprints = std::array<std::uint64_t, fingerprint_words>;
  using slot_type = std::conditional_t<boxed, typename Memory::template field<box*>, mapped_stored>;
  struct keyed_slot {
    K key;
    std::size_t slot;
  };
  struct sorted_pairs {  // a leaf's pairs in key order
    std::array<keyed_slot, Pairs> pairs;
    std::size_t count = 0;
  };
  struct step {
    inner* node;
    std::size_t child;  // index of the child on the path
  };
  struct position {
    std::array<step, max_height> steps;
    std::size_t depth = 0;  // inner nodes on the path
    leaf* at = nullptr;
    fingerprints leaf_fingerprints;
    std::size_t slot = Pairs;  // slot of the key; Pairs: the key is not there
  };
  struct inner_copy {  // an inner node, or two siblings with their separator, in ordinary memory
    std::size_t count = 0;
    std::array<K, 2 * Pairs + 1> key;
    std::array<void*, 2 * Pairs + 2> child;
  };
  struct check_state {
    leaf* next_leaf;
    const K* low = nullptr;  // bounds of the subtree under check; null: none
    const K* high = nullptr;
  };

  // Leaves.
  static std::uint64_t fingerprint_of(key_view key) {
    return std::max<std::uint64_t>(keys::hash_of(key) >> 56, 1);
  }
  static fingerprints load_fingerprints(const leaf* l);
  static std::uint64_t slots_matching(std::uint64_t word, std::uint64_t fingerprint);
  template <class Wanted>
  static std::size_t find_matching(const fingerprints& m, std::uint64_t fingerprint,
                                   Wanted&& wanted);
  static std::size_t count_of(const fingerprints& m);
  static std::size_t find_free_slot(const fingerprints& m);
  static void set_fingerprint(fingerprints& m, std::size_t slot, std::uint64_t fingerprint);
  static void store_fingerprints(leaf* l, const fingerprints& before, const fingerprints& now);
  static std::size_t find_slot(const leaf* l, const fingerprints& m, key_view key);
  static void sort(const leaf* l, const fingerprints& m, sorted_pairs& o);
  static void move_pairs(leaf* from, fingerprints& from_fingerprints, leaf* to,
                         fingerprints& to_fingerprints, const keyed_slot* first, std::size_t count);
  static mapped_stored& value_in(leaf* l, std::size_t slot);
  static void store_value(leaf* l, std::size_t slot, mapped_view value);

  // The path from the root, and changes that propagate upwards.
  static std::size_t child_for(const inner* n, key_view key);
  void find_position(key_view key, position& p) const;
  static constexpr std::size_t keys_in_group = 16;  // keys that find_many looks up together
  static void prefetch_node(const void* node, bool is_leaf);
  using group_results = std::array<mapped_stored*, keys_in_group>;
  void find_group(std::span<const K> wanted, group_results& results) const;
  leaf* first_leaf() const;
  template <class Iterator>
  Iterator bound(key_view key) const;
  mapped_stored& insert_at(position& p, key_view key, mapped_view value);
  void erase_at(position& p);
  void split_leaf(position& p, key_view key);
  void insert_separator(position& p, std::size_t depth, const K& key, void* right);
  void split_inner(position& p, std::size_t depth, const K& key, void* right);
  void add_root(const K& key, void* right);
  void rebalance_leaf(position& p);
  static K redistribute_leaves(leaf* left, fingerprints left_fingerprints, leaf* right,
                               fingerprints right_fingerprints);
  void remove_separator(position& p, std::size_t depth, std::size_t i);
  void rebalance_inner(position& p, std::size_t depth);
  static void load_inner(const inner* n, inner_copy& copy);
  static void store_inner(inner* n, const inner_copy& copy, std::size_t from, std::size_t count);
  static void free_blocks(void* node, std::size_t height);

  // Inspection.
  template <class Visit>
  static void visit_subtree(void* node, std::size_t height, Visit& visit);
  [[nodiscard]] static result<> check_leaf(const leaf* l, bool is_root, check_state& s);
  [[nodiscard]] static result<> check_inner(const inner* n, std::size_t height, bool is_root,
                                            check_state& s);
  static bool within(const K& key, const check_state& s);
  [[nodiscard]] static result<> check_subtree(void* node, std::size_t height, bool is_root,
                                              check_state& s);

  typename Memory::template field<void*> root_;  // a leaf if height_ is 0, else an inner node
  typename Memory::template field<std::uint64_t> height_;  // inner nodes on a path to a leaf
};

template <class K, class V>
using bptree = basic_bptree<K, V, pool_memory>;

template <class K, class V, class Memory, std::size_t Pairs>
struct basic_bptree<K, V, Memory, Pairs>::box {
  using pool_resident = void;
  mapped_stored value;
  explicit box(mapped_view v) { values::create(&value, v); }
};

template <class K, class V, class Memory, std::size_t Pairs>
struct alignas(64) basic_bptree<K, V, Memory, Pairs>::leaf {
  typename Memory::template field<leaf*> next;
  // one byte for each slot
  typename Memory::template field<std::uint64_t> fingerprint[fingerprint_words];
  typename Memory::template field<K> key[Pairs];
  slot_type value[Pairs];
};

template <class K, class V, class Memory, std::size_t Pairs>
struct alignas(64) basic_bptree<K, V, Memory, Pairs>::inner {
  typename Memory::template field<std::uint64_t> count;  // number of keys
  // child[i] holds the keys less than key[i], child[i + 1] the others.
  typename Memory::template field<K> key[Pairs];
  typename Memory::template field<void*> child[Pairs + 1];
};

}  // namespace stele

#include <stele/detail/bptree_inl.h>
