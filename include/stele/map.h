// map: an ordered map as a red-black tree, in the shape of std::map.
//
// After Guibas and Sedgewick ("A Dichromatic Framework for Balanced Trees", 1978), with the case
// analysis of Cormen et al. (Introduction to Algorithms, chapter 13). Two departures, both to write
// fewer words and touch fewer lines: a node's colour is a bit of the link that leads to it, so
// looking at or changing the colours of two siblings touches only their parent; and there are no
// parent links (a change remembers its path), so a rotation writes three words. A null link is
// black, and so is the link to the root; below a red link both links are black; every way from the
// root to a null link crosses the same number of black links.
//
// Keys are ordered by <=>. Zeroed memory is an empty map. All members belong inside a transaction
// of the pool that holds the map, changing ones inside an update, and are rolled back with it.
// References and iterators stay valid until their item is erased; entries until the next change of
// the map. Those that allocate throw failure(errc::full). There is no counter of items, as every
// insert and erase would contend for it: size() counts.
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

  basic_map() noexcept = default;  // for zeroed memory: leaves it as it is, an empty map
  ~basic_map() noexcept(false) {
    detail::run_destructor([&] { free_blocks(root_.load().to); });
  }
  basic_map(const basic_map&) = delete;
  basic_map& operator=(const basic_map&) = delete;

  [[nodiscard]] std::size_t size() const;  // O(n)
  [[nodiscard]] bool empty() const { return root_.load().to == nullptr; }

  // O(log n), as are all that follow unless they say otherwise.
  iterator find(key_view key) { return iterator(*this, find_node(key)); }
  const_iterator find(key_view key) const { return const_iterator(*this, find_node(key)); }
  [[nodiscard]] bool contains(key_view key) const { return find_node(key) != nullptr; }
  [[nodiscard]] std::size_t count(key_view key) const { return contains(key); }
  // The first item whose key is not less than / is greater than `key`.
  iterator lower_bound(key_view key) { return iterator(*this, bound(key, false)); }
  const_iterator lower_bound(key_view key) const {
    return const_iterator(*this, bound(key, false));
  }
  iterator upper_bound(key_view key) { return iterator(*this, bound(key, true)); }
  const_iterator upper_bound(key_view key) const { return const_iterator(*this, bound(key, true)); }
  // The items whose keys are not less than `from` and less than `to`: for (auto& [key, value] :
  // m.range("a", "b")).
  item_range<iterator> range(key_view from, key_view to) {
    return {lower_bound(from), lower_bound(std::max(from, to))};
  }
  item_range<const_iterator> range(key_view from, key_view to) const {
    return {lower_bound(from), lower_bound(std::max(from, to))};
  }

  // The value of a key; throws failure(errc::not_found) when there is none.
  mapped_stored& at(key_view key) { return node_at(key)->item.second; }
  const mapped_stored& at(key_view key) const { return node_at(key)->item.second; }
  // The value of a key, which is inserted with a zero value or an empty container when it is not
  // there.
  mapped_stored& operator[](key_view key) { return try_emplace(key).first->second; }

  // The place of a key, found once, for looking, inserting and erasing there.
  entry find_entry(key_view key) { return entry(*this, key); }

  // Inserts unless the key is there: {item, inserted?}.
  std::pair<iterator, bool> insert(key_view key, mapped_view value);
  std::pair<iterator, bool> insert_or_assign(key_view key, mapped_view value);
  std::pair<iterator, bool> try_emplace(key_view key);  // a zero value; an empty container
  std::size_t erase(key_view key);                      // the number of items erased, 0 or 1
  iterator erase(const_iterator at);  // returns the item behind; m.erase(m.begin()) takes the least
  void clear();                       // O(n); frees every block

  // In key order, and against it from the end. A step costs O(log n) at most; going over all n
  // items with for_each costs O(n).
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

  // Calls visit(const void*) for every allocated block that the map reaches.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, when order, colours or black heights are not as above.
  [[nodiscard]] result<> check() const;

 private:
  static constexpr std::size_t max_height =
      96;  // twice the logarithm of the number of nodes a pool can hold

  struct link_value {
    node* to = nullptr;
    bool red = false;
  };
  struct step {
    link* at;  // the link followed,
    node* to;  // and what it held
    bool red;
  };
  struct path {
    step steps[max_height];
    std::size_t
        last;  // the step that leads to the key's node, or to the null link where it belongs
    bool found;
  };
  struct check_state {
    const node* before = nullptr;  // the last node met in order
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

// The distance to a node in bytes, plus 1 when the node is red; 0: none.
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
  link child[2];  // 0: lesser keys, 1: greater ones
  value_type item;

  template <class... Arguments>
  explicit node(Arguments&&... arguments) : item(std::forward<Arguments>(arguments)...) {
    child[0].clear();
    child[1].clear();
  }
};

}  // namespace stele

#include <stele/map_inl.h>
