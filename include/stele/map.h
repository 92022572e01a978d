// map: an ordered map as a red-black tree, with the interface of std::map.
//
//   struct book { using pool_resident = void; stele::map<stele::string, std::uint64_t> pages; };
//   auto pool = stele::pool<book>::open("book.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](book& b) { b.pages["preface"] = 7; b.pages.erase("index"); });
//   auto get = pool->read([](const book& b) { return b.pages.at("preface").load(); });
//   if (get) std::printf("page %lu\n", *get);
//
// After Guibas and Sedgewick ("A Dichromatic Framework for Balanced Trees", 1978), with the case
// analysis of Cormen et al. (Introduction to Algorithms, chapter 13). Two departures write fewer
// words and touch fewer lines. A node's colour is a bit of the link to the node, so reading or
// changing the colours of two siblings touches only their parent. There are no parent links (a
// change remembers its path), so a rotation writes three words. Invariants: a null link is black;
// the link to the root is black; below a red link both links are black; every path from the root to
// a null link has the same number of black links.
//
// Keys are ordered by <=>. Zeroed memory is an empty map. Call members in a transaction of the pool
// that holds the map, changing members in an update; they are rolled back with it. References and
// iterators are valid until their item is erased, entries until the next change of the map. Members
// that allocate throw failure(errc::full). There is no item counter, because every insert and erase
// would conflict on it; size() counts.
#pragma once

#include <stele/element.h>

#include <algorithm>
#include <iterator>

namespace stele {

template <class K, class V, class Memory>
class basic_map {
  using keys = element<K, Memory>;
  using values = element<V, Memory>;
  struct node;
  class link;

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

  basic_map() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty map
  ~basic_map() {
    run_destructor([&] { free_blocks(root_.load().to); });
  }
  basic_map(const basic_map&) = delete;
  basic_map& operator=(const basic_map&) = delete;

  [[nodiscard]] std::size_t size() const;  // O(n)
  [[nodiscard]] bool empty() const { return root_.load().to == nullptr; }

  // O(log n), as are all members below that name no cost.
  iterator find(key_view key) { return iterator(*this, find_node(key)); }
  const_iterator find(key_view key) const { return const_iterator(*this, find_node(key)); }
  [[nodiscard]] bool contains(key_view key) const { return find_node(key) != nullptr; }
  [[nodiscard]] std::size_t count(key_view key) const { return contains(key); }
  // lower_bound: the first item with a key not less than `key`. upper_bound: greater than `key`.
  iterator lower_bound(key_view key) { return iterator(*this, bound(key, false)); }
  const_iterator lower_bound(key_view key) const {
    return const_iterator(*this, bound(key, false));
  }
  iterator upper_bound(key_view key) { return iterator(*this, bound(key, true)); }
  const_iterator upper_bound(key_view key) const { return const_iterator(*this, bound(key, true)); }
  // The items with from <= key < to, for a loop:
  //   for (auto& [key, value] : m.range("a", "b"))
  item_range<iterator> range(key_view from, key_view to) {
    return {lower_bound(from), lower_bound(std::max(from, to))};
  }
  item_range<const_iterator> range(key_view from, key_view to) const {
    return {lower_bound(from), lower_bound(std::max(from, to))};
  }

  // The value of a key. Throws failure(errc::not_found) if the key is not there.
  mapped_stored& at(key_view key) { return node_at(key)->item.second; }
  const mapped_stored& at(key_view key) const { return node_at(key)->item.second; }
  // The value of a key. If the key is not there, inserts it with a zero value or an empty
  // container.
  mapped_stored& operator[](key_view key) { return try_emplace(key).first->second; }

  // The position of a key, searched once, to test, insert or erase there.
  entry find_entry(key_view key) { return entry(*this, key); }

  // Inserts if the key is not there: {item, inserted?}.
  std::pair<iterator, bool> insert(key_view key, mapped_view value);
  std::pair<iterator, bool> insert_or_assign(key_view key, mapped_view value);
  std::pair<iterator, bool> emplace(key_view key, mapped_view value) { return insert(key, value); }
  std::pair<iterator, bool> try_emplace(key_view key, mapped_view value) {
    return insert(key, value);
  }
  std::pair<iterator, bool> try_emplace(key_view key);  // a zero value or empty container
  std::size_t erase(key_view key);                      // the number of items erased, 0 or 1
  iterator erase(const_iterator at);                    // returns the next item
  void clear();                                         // O(n); frees every block

  // In key order; backwards from rbegin(). One step costs at most O(log n); for_each over all n
  // items costs O(n).
  iterator begin() { return iterator(*this, outermost(root_.load().to, 0)); }
  const_iterator begin() const { return const_iterator(*this, outermost(root_.load().to, 0)); }
  iterator end() { return iterator(*this, nullptr); }
  const_iterator end() const { return const_iterator(*this, nullptr); }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  // Calls f(const stored key&, const stored value&) on each item in key order.
  template <class F>
  void for_each(F&& f) const {
    auto call = [&](const node* n) { f(n->item.first, n->item.second); };
    in_order(root_.load().to, call);
  }

  // Calls visit(const void*) for every allocated block of the map.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if key order, colours or black heights break an invariant.
  [[nodiscard]] result<> check() const;

 private:
  // Twice the logarithm of the number of nodes that a pool can hold.
  static constexpr std::size_t max_height = 96;

  struct link_value {
    node* to = nullptr;
    bool red = false;
  };
  struct step {
    link* at;  // the link that was followed
    node* to;  // the content of that link
    bool red;
  };
  struct path {
    step steps[max_height];
    // Index of the step to the key's node, or to the null link where the key belongs.
    std::size_t last;
    bool found;
  };
  struct check_state {
    const node* before = nullptr;  // the last node visited in key order
    std::size_t black_height = 0;
    std::size_t height = 0;
  };

  static node* outermost(node* n, std::size_t side);
  node* neighbour(const node* n, std::size_t side) const;
  template <class Visit>
  static void in_order(node* n, Visit& visit);
  static void free_blocks(node* n);
  node* find_node(key_view key) const;
  node* node_at(key_view key) const;
  node* bound(key_view key, bool above) const;

  void find_path(key_view key, path& p);
  static node* insert_node(path& p, node* n);
  static void erase_at(path& p);
  static std::size_t extend_to_successor(path& p, link_value greater);
  static void replace_by_successor(path& p, std::size_t successor, link_value lesser,
                                   link_value greater);
  static void rotate(link& top, node* n, std::size_t side, bool top_red, bool below_red);
  static void rotate_double(link& top, node* n, std::size_t side, bool top_red, bool below_red);
  static void fix_double_red(path& p, std::size_t i);
  static void fix_missing_black(path& p, std::size_t i);
  [[nodiscard]] static result<> check_subtree(link_value t, check_state& s);

  link root_;
};

template <class K, class V>
using map = basic_map<K, V, pool_memory>;

// The distance to a node in bytes, plus 1 if the node is red; 0: no node.
template <class K, class V, class Memory>
class basic_map<K, V, Memory>::link {
 public:
  link_value load() const {
    const std::int64_t word = word_.load();
    if (word == 0) return {};
    return {
        reinterpret_cast<node*>(reinterpret_cast<std::intptr_t>(this) + (word & ~std::int64_t{1})),
        (word & 1) != 0};
  }
  void store(node* to, bool red) {
    const auto distance =
        reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(this);
    word_ = to == nullptr ? 0 : distance | std::int64_t{red};
  }
  void store(link_value t) { store(t.to, t.red); }
  void clear() { word_ = 0; }

 private:
  link_field<Memory, std::int64_t> word_;
};

template <class K, class V, class Memory>
struct basic_map<K, V, Memory>::node {
  using pool_resident = void;
  link child[2];  // 0: lesser keys, 1: greater keys
  value_type item;

  template <class... Arguments>
  explicit node(Arguments&&... arguments) : item(std::forward<Arguments>(arguments)...) {
    child[0].clear();
    child[1].clear();
  }
};

}  // namespace stele

#include <stele/detail/map_inl.h>
