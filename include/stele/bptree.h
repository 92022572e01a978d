// bptree: an ordered map as a B+ tree whose nodes are 4 KiB, with 200 pairs of 8-byte keys and
// values in each.
//
// A leaf does not keep its pairs in order: a byte per slot holds a fingerprint of the slot's key
// (0: free), as in the FPTree of Oukid et al. (SIGMOD 2016), whose bitmap is folded into the
// fingerprints here. So an insert into a leaf stores key, value and one word of fingerprints, an
// erase one word, where a sorted leaf shifts a hundred pairs. A lookup compares fingerprints, then
// the few keys whose fingerprint fits. Inner nodes are sorted. Comer ("The Ubiquitous B-Tree",
// 1979) describes the rest, but here a node other than the root is at least a quarter full: it
// joins a sibling only when the two fill three quarters at most, so that a mix of inserts and
// erases does not split and join in turn.
//
// Keys are storable values ordered by <=>; a value of more than 8 bytes, or a container, has a
// block of its own, so that leaves stay wide. Zeroed memory is an empty tree. All members belong
// inside a transaction of the pool that holds the tree, changing ones inside an update, and are
// rolled back with it. Iterators, entries and references are valid until the next change of the
// tree; references to values in blocks of their own until their pair is erased. Those that allocate
// throw failure(errc::full). There is no counter of pairs, as every insert and erase would contend
// for it: size() counts.
#pragma once

#include <stele/element.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace stele {

// The most pairs that a node of 4 KiB holds, 200 at most; a multiple of 8.
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

  basic_bptree() noexcept = default;  // for zeroed memory: leaves it as it is, an empty tree
  ~basic_bptree() noexcept(false) {
    detail::run_destructor([&] { free_blocks(root_, height_); });
  }
  basic_bptree(const basic_bptree&) = delete;
  basic_bptree& operator=(const basic_bptree&) = delete;

  [[nodiscard]] std::size_t size() const;  // O(leaves)
  [[nodiscard]] bool empty() const { return root_.load() == nullptr; }

  // O(log n), as are all that follow unless they say otherwise. The stored value, or null.
  mapped_stored* find(key_view key);
  const mapped_stored* find(key_view key) const {
    return const_cast<basic_bptree*>(this)->find(key);
  }
  [[nodiscard]] bool contains(key_view key) const { return find(key) != nullptr; }

  // The place of a key, found once, for looking, inserting and erasing there.
  entry find_entry(key_view key) { return entry(*this, key); }

  // Inserts unless the key is there: {stored value, inserted?}.
  std::pair<mapped_stored*, bool> insert(key_view key, mapped_view value);
  std::pair<mapped_stored*, bool> insert_or_assign(key_view key, mapped_view value);
  std::size_t erase(key_view key);  // the number of pairs erased, 0 or 1
  void clear();                     // O(n); frees every block

  // In key order. Entering a leaf costs O(pairs log pairs), as it is sorted then; other steps O(1).
  iterator begin() { return iterator(first_leaf()); }
  const_iterator begin() const { return const_iterator(first_leaf()); }
  std::default_sentinel_t end() const { return {}; }
  // The first pair whose key is not less than `key`.
  iterator lower_bound(key_view key) { return bound<iterator>(key); }
  const_iterator lower_bound(key_view key) const { return bound<const_iterator>(key); }
  // Calls f(key, const stored value&) on each pair in key order. O(n log pairs).
  template <class F>
  void for_each(F&& f) const {
    for (auto it = begin(); it != end(); ++it) f((*it).first, (*it).second);
  }

  // Calls visit(const void*) for every allocated block that the tree reaches.
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    visit_subtree(root_, height_, visit);
  }
  // Errors: corrupt, when order, fill, fingerprints, heights or the chain of leaves are not as
  // above.
  [[nodiscard]] result<> check() const;

  static constexpr std::size_t node_bytes = 4096;

 private:
  static constexpr std::size_t fingerprint_words = Pairs / 8;  // of fingerprints in a leaf
  static constexpr std::size_t min_pairs =
      Pairs / 4;  // pairs (inner: keys) in a node other than the root
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
  struct sorted_pairs {  // a leaf's pairs by key
    std::array<keyed_slot, Pairs> pairs;
    std::size_t count = 0;
  };
  struct step {
    inner* node;
    std::size_t child;  // the one followed
  };
  struct position {
    std::array<step, max_height> steps;
    std::size_t depth = 0;  // inner nodes passed
    leaf* at = nullptr;
    fingerprints leaf_fingerprints;
    std::size_t slot = Pairs;  // of the key; Pairs: not there
  };
  struct inner_copy {  // an inner node, or two siblings and what parts them, in ordinary memory
    std::size_t count = 0;
    std::array<K, 2 * Pairs + 1> key;
    std::array<void*, 2 * Pairs + 2> child;
  };
  struct check_state {
    leaf* next_leaf;
    const K* low = nullptr;  // bounds of the subtree looked at; null: none
    const K* high = nullptr;
  };

  // Leaves.
  static std::uint64_t fingerprint_of(key_view key) {
    return std::max<std::uint64_t>(keys::hash_of(key) >> 56, 1);
  }
  static fingerprints load_fingerprints(const leaf* l);
  static std::uint64_t slots_matching(std::uint64_t word, std::uint64_t fingerprint);
  static std::size_t count_of(const fingerprints& m);
  static std::size_t find_free_slot(const fingerprints& m);
  static void set_fingerprint(fingerprints& m, std::size_t slot, std::uint64_t fingerprint);
  static void store_fingerprints(leaf* l, const fingerprints& before, const fingerprints& now);
  static void find_in_leaf(key_view key, position& p);
  static void sort(const leaf* l, const fingerprints& m, sorted_pairs& o);
  static void move_pairs(leaf* from, fingerprints& from_fingerprints, leaf* to,
                         fingerprints& to_fingerprints, const keyed_slot* first, std::size_t count);
  static mapped_stored& value_in(leaf* l, std::size_t slot);
  static void store_value(leaf* l, std::size_t slot, mapped_view value);

  // The way down, and changes that climb back.
  static std::size_t child_for(const inner* n, key_view key);
  void find_position(key_view key, position& p) const;
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

  // Examining.
  template <class Visit>
  static void visit_subtree(void* node, std::size_t height, Visit& visit);
  [[nodiscard]] static result<> check_leaf(const leaf* l, bool is_root, check_state& s);
  [[nodiscard]] static result<> check_inner(const inner* n, std::size_t height, bool is_root,
                                            check_state& s);
  static bool within(const K& key, const check_state& s);
  [[nodiscard]] static result<> check_subtree(void* node, std::size_t height, bool is_root,
                                              check_state& s);

  typename Memory::template field<void*> root_;  // a leaf at height 0, an inner node above
  typename Memory::template field<std::uint64_t> height_;  // inner nodes on the way to a leaf
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
  typename Memory::template field<std::uint64_t> fingerprint[fingerprint_words];  // a byte a slot
  typename Memory::template field<K> key[Pairs];
  slot_type value[Pairs];
};

template <class K, class V, class Memory, std::size_t Pairs>
struct alignas(64) basic_bptree<K, V, Memory, Pairs>::inner {
  typename Memory::template field<std::uint64_t> count;  // of keys
  typename Memory::template field<K>
      key[Pairs];  // key[i]: child[i] holds lesser ones, child[i + 1] the others
  typename Memory::template field<void*> child[Pairs + 1];
};

}  // namespace stele

#include <stele/bptree_inl.h>
