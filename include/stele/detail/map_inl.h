// The members of map; map.h has their contracts.
#pragma once

namespace stele {

// The position of one key. Valid until the map is changed by other means than this entry.
template <class K, class V, class Memory>
class basic_map<K, V, Memory>::entry {
 public:
  [[nodiscard]] bool exists() const { return path_.found; }
  value_type& item() const { return path_.steps[path_.last].to->item; }  // requires exists()
  // Inserts the key with this value. Requires !exists(). The entry is invalid afterwards, as after
  // the members below.
  value_type& insert(mapped_view value) {
    return map_.insert_node(path_, Memory::template make<node>(key_, value))->item;
  }
  // Inserts the key with a zero value or an empty container. Requires !exists().
  value_type& insert() { return map_.insert_node(path_, Memory::template make<node>(key_))->item; }
  // Erases the item. Requires exists().
  void erase() { map_.erase_at(path_); }

 private:
  friend basic_map;
  entry(basic_map& map, key_view key) : map_(map), key_(key) { map.find_path(key, path_); }

  basic_map& map_;
  std::remove_cvref_t<key_view> key_;  // a string key is a view of the caller's characters
  path path_;
};

// Visits the items in key order. Where a node has no child on that side, the next node is searched
// from the root. A null node is the end.
template <class K, class V, class Memory>
template <class Item>
class basic_map<K, V, Memory>::basic_iterator {
 public:
  using value_type = Item;
  using difference_type = std::ptrdiff_t;
  using reference = Item&;
  using pointer = Item*;
  using iterator_category = std::bidirectional_iterator_tag;

  basic_iterator() = default;
  operator basic_iterator<const Item>() const { return {*map_, node_}; }
  Item& operator*() const { return node_->item; }
  Item* operator->() const { return &node_->item; }
  basic_iterator& operator++() {
    node_ = map_->neighbour(node_, 1);
    return *this;
  }
  basic_iterator& operator--() {
    node_ = node_ == nullptr ? outermost(map_->root_.load().to, 1) : map_->neighbour(node_, 0);
    return *this;
  }
  basic_iterator operator++(int) {
    basic_iterator before = *this;
    ++*this;
    return before;
  }
  basic_iterator operator--(int) {
    basic_iterator before = *this;
    --*this;
    return before;
  }
  friend bool operator==(const basic_iterator& a, const basic_iterator& b) {
    return a.node_ == b.node_;
  }

 private:
  friend basic_map;
  template <class>
  friend class basic_iterator;
  basic_iterator(const basic_map& map, node* n) : map_(&map), node_(n) {}

  const basic_map* map_ = nullptr;
  node* node_ = nullptr;
};

// Lookup.

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::find_node(key_view key) const -> node* {
  node* n = root_.load().to;
  while (n != nullptr) {
    const auto order = keys::compare(key, n->item.first);
    if (order == 0) return n;
    n = n->child[order > 0].load().to;
  }
  return nullptr;
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::bound(key_view key, bool above) const -> node* {
  node* best = nullptr;
  for (node* n = root_.load().to; n != nullptr;) {
    const auto order = keys::compare(key, n->item.first);
    const bool beyond = order < 0 || (order == 0 && !above);
    if (beyond) best = n;
    n = n->child[!beyond].load().to;
  }
  return best;
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::node_at(key_view key) const -> node* {
  node* const n = find_node(key);
  return n != nullptr ? n : (detail::throw_key_not_found(), n);
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::outermost(node* n, std::size_t side) -> node* {
  if (n == nullptr) return n;
  while (node* const next = n->child[side].load().to) n = next;
  return n;
}

// The next node after n in key order (side 1) or before it (side 0), or null.
template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::neighbour(const node* n, std::size_t side) const -> node* {
  if (node* const below = n->child[side].load().to) return outermost(below, 1 - side);
  decltype(auto) key = keys::get(n->item.first);
  node* nearest = nullptr;
  for (node* above = root_.load().to; above != n;) {
    const std::size_t way = keys::compare(key, above->item.first) > 0;
    if (way != side) nearest = above;
    above = above->child[way].load().to;
  }
  return nearest;
}

template <class K, class V, class Memory>
template <class Visit>
void basic_map<K, V, Memory>::in_order(node* n, Visit& visit) {
  for (; n != nullptr; n = n->child[1].load().to) {
    in_order(n->child[0].load().to, visit);
    visit(n);
  }
}

template <class K, class V, class Memory>
std::size_t basic_map<K, V, Memory>::size() const {
  std::size_t count = 0;
  auto add = [&](const node*) { ++count; };
  in_order(root_.load().to, add);
  return count;
}

// Inserting.

template <class K, class V, class Memory>
void basic_map<K, V, Memory>::find_path(key_view key, path& p) {
  link* at = &root_;
  for (p.last = 0;; ++p.last) {
    const link_value t = at->load();
    p.steps[p.last] = {at, t.to, t.red};
    p.found = t.to != nullptr;
    if (!p.found) return;
    const auto order = keys::compare(key, t.to->item.first);
    if (order == 0) return;
    at = &t.to->child[order > 0];
  }
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::insert_node(path& p, node* n) -> node* {
  step& place = p.steps[p.last];
  place.to = n;
  place.red = p.last != 0;
  place.at->store(n, place.red);
  fix_double_red(p, p.last);
  return n;
}

// Rotation: the child of n on `side` takes the place of n under `top`, and n becomes its child. The
// arguments give the new colours.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::rotate(link& top, node* n, std::size_t side, bool top_red,
                                     bool below_red) {
  node* const child = n->child[side].load().to;
  n->child[side].store(child->child[1 - side].load());
  child->child[1 - side].store(n, below_red);
  top.store(child, top_red);
}

// Double rotation: the inner child of n's child on `side` takes the place of n. n and that child
// become its children. The arguments give the new colours.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::rotate_double(link& top, node* n, std::size_t side, bool top_red,
                                            bool below_red) {
  node* const child = n->child[side].load().to;
  node* const inner = child->child[1 - side].load().to;
  child->child[1 - side].store(inner->child[side].load());
  n->child[side].store(inner->child[1 - side].load());
  inner->child[side].store(child, below_red);
  inner->child[1 - side].store(n, below_red);
  top.store(inner, top_red);
}

// Step i is red. While the step before it is red too, recolours upwards; ends with at most one
// rotation.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::fix_double_red(path& p, std::size_t i) {
  for (; i >= 2 && p.steps[i - 1].red; i -= 2) {
    step& top = p.steps[i - 2];
    node* const grandparent = top.to;
    node* const parent = p.steps[i - 1].to;
    const std::size_t side = p.steps[i - 1].at == &grandparent->child[1];
    const link_value uncle = grandparent->child[1 - side].load();
    if (!uncle.red) {
      if (p.steps[i].at == &parent->child[side])
        return rotate(*top.at, grandparent, side, false, true);
      return rotate_double(*top.at, grandparent, side, false, true);
    }
    grandparent->child[side].store(parent, false);
    grandparent->child[1 - side].store(uncle.to, false);
    if (i == 2) return;  // the root stays black
    top.at->store(grandparent, true);
    top.red = true;
  }
}

// Erasing.

// Extends the path, which ends at a node with two children, to the node's successor. Returns the
// successor's step.
template <class K, class V, class Memory>
std::size_t basic_map<K, V, Memory>::extend_to_successor(path& p, link_value greater) {
  std::size_t i = p.last + 1;
  p.steps[i] = {&p.steps[p.last].to->child[1], greater.to, greater.red};
  for (;;) {
    link& left = p.steps[i].to->child[0];
    const link_value t = left.load();
    if (t.to == nullptr) return i;
    p.steps[++i] = {&left, t.to, t.red};
  }
}

// Puts the successor in the place of the node at the path's end. The caller later unlinks the
// successor from its old place.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::replace_by_successor(path& p, std::size_t successor,
                                                   link_value lesser, link_value greater) {
  step& place = p.steps[p.last];
  node* const n = p.steps[successor].to;
  if (successor != p.last + 1) n->child[1].store(greater);
  n->child[0].store(lesser);
  place.at->store(n, place.red);
  place.to = n;
  p.steps[p.last + 1].at = &n->child[1];
}

// Unlinks the node at the path's end. If it has two children, its successor takes its place; nodes
// are never copied.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::erase_at(path& p) {
  node* const gone = p.steps[p.last].to;
  const link_value lesser = gone->child[0].load();
  const link_value greater = gone->child[1].load();
  const bool two = lesser.to != nullptr && greater.to != nullptr;
  // The step that is removed from the tree.
  const std::size_t end = two ? extend_to_successor(p, greater) : p.last;
  const link_value rest = two                    ? p.steps[end].to->child[1].load()
                          : lesser.to != nullptr ? lesser
                                                 : greater;
  if (two) replace_by_successor(p, end, lesser, greater);
  const bool in_place = end == p.last + 1 && !rest.red;   // the successor keeps its right link
  if (!in_place) p.steps[end].at->store(rest.to, false);  // red becomes the missing black
  if (!p.steps[end].red && !rest.red) fix_missing_black(p, end);
  Memory::destroy(gone);
}

// Every path through step i has one black link too few.
template <class K, class V, class Memory>
void basic_map<K, V, Memory>::fix_missing_black(path& p, std::size_t i) {
  while (i > 0) {
    step& top = p.steps[i - 1];
    node* const parent = top.to;
    const std::size_t side = p.steps[i].at == &parent->child[0];  // the sibling's
    const link_value sibling = parent->child[side].load();
    if (sibling.red) {  // rotate; the new sibling was its child, so it is black
      rotate(*top.at, parent, side, false, true);
      top.to = sibling.to;
      p.steps[i + 1].at = p.steps[i].at;
      p.steps[i] = {&sibling.to->child[1 - side], parent, true};
      ++i;
      continue;
    }
    const link_value outer = sibling.to->child[side].load();
    if (outer.red) {
      rotate(*top.at, parent, side, top.red, false);
      return sibling.to->child[side].store(outer.to, false);
    }
    if (sibling.to->child[1 - side].load().red)
      return rotate_double(*top.at, parent, side, top.red, false);
    parent->child[side].store(sibling.to, true);
    if (top.red) return top.at->store(parent, false);
    --i;
  }
}

template <class K, class V, class Memory>
void basic_map<K, V, Memory>::free_blocks(node* n) {
  while (n != nullptr) {
    free_blocks(n->child[0].load().to);
    Memory::destroy(std::exchange(n, n->child[1].load().to));
  }
}

template <class K, class V, class Memory>
void basic_map<K, V, Memory>::clear() {
  free_blocks(root_.load().to);
  root_.clear();
}

template <class K, class V, class Memory>
std::size_t basic_map<K, V, Memory>::erase(key_view key) {
  entry e(*this, key);
  if (!e.exists()) return 0;
  e.erase();
  return 1;
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::erase(const_iterator at) -> iterator {
  const iterator next(*this, neighbour(at.node_, 1));
  erase(keys::get(at->first));
  return next;
}

// The interface of std::map.

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::insert(key_view key, mapped_view value) -> std::pair<iterator, bool> {
  path p;
  find_path(key, p);
  if (p.found) return {iterator(*this, p.steps[p.last].to), false};
  return {iterator(*this, insert_node(p, Memory::template make<node>(key, value))), true};
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::insert_or_assign(key_view key, mapped_view value)
    -> std::pair<iterator, bool> {
  const auto [it, fresh] = insert(key, value);
  if (!fresh) values::assign(it->second, value);
  return {it, fresh};
}

template <class K, class V, class Memory>
auto basic_map<K, V, Memory>::try_emplace(key_view key) -> std::pair<iterator, bool> {
  path p;
  find_path(key, p);
  if (p.found) return {iterator(*this, p.steps[p.last].to), false};
  return {iterator(*this, insert_node(p, Memory::template make<node>(key))), true};
}

// Inspection.

template <class K, class V, class Memory>
template <class Visit>
void basic_map<K, V, Memory>::visit_blocks(Visit&& visit) const {
  auto each = [&](const node* n) {
    visit(detail::block_of<Memory>(n));
    keys::visit_blocks(n->item.first, visit);
    values::visit_blocks(n->item.second, visit);
  };
  in_order(root_.load().to, each);
}

template <class K, class V, class Memory>
result<> basic_map<K, V, Memory>::check() const {
  check_state s;
  if (root_.load().red) return detail::corrupt_error("red-black map: the root is red");
  return check_subtree(root_.load(), s);
}

template <class K, class V, class Memory>
result<> basic_map<K, V, Memory>::check_subtree(link_value t, check_state& s) {
  s.black_height = 0;
  if (t.to == nullptr) return {};
  if (++s.height > max_height)
    return detail::corrupt_error("red-black map: higher than any balanced tree");
  const link_value lesser = t.to->child[0].load();
  const link_value greater = t.to->child[1].load();
  if (t.red && (lesser.red || greater.red))
    return detail::corrupt_error("red-black map: two red links in a row");
  if (auto r = check_subtree(lesser, s); !r) return r;
  const std::size_t black_height = s.black_height;
  if (s.before != nullptr &&
      keys::compare(keys::get(t.to->item.first), s.before->item.first) <= 0) {
    return detail::corrupt_error("red-black map: keys out of order");
  }
  s.before = t.to;
  if (auto r = check_subtree(greater, s); !r) return r;
  if (black_height != s.black_height)
    return detail::corrupt_error("red-black map: black heights differ");
  s.black_height += !t.red;
  --s.height;
  return {};
}

}  // namespace stele
