// The members of bptree that erase and examine; see bptree.h for what they promise.
#pragma once

namespace stele {

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::erase(key_view key) {
  place p;
  find_place(key, p);
  if (p.slot == Pairs) return 0;
  erase_at(p);
  return 1;
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::erase_at(place& p) {
  if constexpr (boxed) Memory::destroy(p.at->value[p.slot].load());
  set_mark(p.marked, p.slot, 0);
  p.at->mark[p.slot / 8] = p.marked[p.slot / 8];
  p.slot = Pairs;
  const std::size_t count = count_of(p.marked);
  if (p.depth != 0 && count < least) return mend_leaf(p);
  if (p.depth == 0 && count == 0) {
    Memory::destroy(p.at);
    root_ = nullptr;
  }
}

// The leaf at the path's end is less than a quarter full: joins it with a sibling, or evens them out.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::mend_leaf(place& p) {
  const auto [parent, at] = p.steps[p.depth - 1];
  const std::size_t i = at < parent->count ? at : at - 1;  // the key that parts the two
  leaf* const left = static_cast<leaf*>(parent->child[i].load());
  leaf* const right = static_cast<leaf*>(parent->child[i + 1].load());
  marks left_marks = load_marks(left), right_marks = load_marks(right);
  if (count_of(left_marks) + count_of(right_marks) > joined) {
    return keys::assign(parent->key[i], even_leaves(left, left_marks, right, right_marks));
  }
  order o;
  sort(right, right_marks, o);
  move_pairs(right, right_marks, left, left_marks, o.pairs.data(), o.count);
  left->next = right->next.load();
  Memory::destroy(right);
  remove_above(p, p.depth, i);
}

// Returns the key that parts the two leaves from now on.
template <class K, class V, class Memory, std::size_t Pairs>
K basic_bptree<K, V, Memory, Pairs>::even_leaves(leaf* left, marks left_marks, leaf* right, marks right_marks) {
  order l, r;
  sort(left, left_marks, l);
  sort(right, right_marks, r);
  if (l.count > r.count) {
    const std::size_t kept = l.count - (l.count - r.count) / 2;
    move_pairs(left, left_marks, right, right_marks, &l.pairs[kept], l.count - kept);
    return l.pairs[kept].key;
  }
  const std::size_t moved = (r.count - l.count) / 2;
  move_pairs(right, right_marks, left, left_marks, r.pairs.data(), moved);
  return r.pairs[moved].key;
}

// Removes key i and child i + 1 of the inner node that the path passes at `depth`.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::remove_above(place& p, std::size_t depth, std::size_t i) {
  inner* const n = p.steps[depth - 1].node;
  const std::size_t count = n->count;
  for (; i + 1 < count; ++i) {
    n->key[i] = n->key[i + 1];
    n->child[i + 1] = n->child[i + 2];
  }
  n->count = count - 1;
  if (depth != 1 && count - 1 < least) return mend_inner(p, depth);
  if (depth == 1 && count == 1) {
    root_ = n->child[0].load();
    height_ -= 1;
    Memory::destroy(n);
  }
}

// mend_leaf for the inner node at `depth`.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::mend_inner(place& p, std::size_t depth) {
  const auto [parent, at] = p.steps[depth - 2];
  const std::size_t i = at < parent->count ? at : at - 1;
  inner* const left = static_cast<inner*>(parent->child[i].load());
  inner* const right = static_cast<inner*>(parent->child[i + 1].load());
  inner_image image;
  load_image(left, image);
  image.key[image.count++] = keys::get(parent->key[i]);
  load_image(right, image);
  if (image.count <= joined) {
    store_image(left, image, 0, image.count);
    Memory::destroy(right);
    return remove_above(p, depth - 1, i);
  }
  const std::size_t half = image.count / 2;
  store_image(left, image, 0, half);
  keys::assign(parent->key[i], image.key[half]);
  store_image(right, image, half + 1, image.count - half - 1);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::release(void* node, std::size_t height) {
  if (node == nullptr) return;
  if (height != 0) {
    inner* const n = static_cast<inner*>(node);
    for (std::size_t i = 0; i <= n->count; ++i) release(n->child[i], height - 1);
    return Memory::destroy(n);
  }
  leaf* const l = static_cast<leaf*>(node);
  if constexpr (boxed) {
    order o;
    sort(l, load_marks(l), o);
    for (std::size_t i = 0; i < o.count; ++i) Memory::destroy(l->value[o.pairs[i].slot].load());
  }
  Memory::destroy(l);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::clear() {
  release(root_, height_);
  root_ = nullptr;
  height_ = 0;
}

// Examining.

template <class K, class V, class Memory, std::size_t Pairs>
template <class Visit>
void basic_bptree<K, V, Memory, Pairs>::visit_below(void* node, std::size_t height, Visit& visit) {
  if (node == nullptr) return;
  visit(static_cast<const void*>(node));
  if (height != 0) {
    const inner* n = static_cast<const inner*>(node);
    for (std::size_t i = 0; i <= n->count; ++i) visit_below(n->child[i].load(), height - 1, visit);
  } else if constexpr (boxed) {
    leaf* const l = static_cast<leaf*>(node);
    order o;
    sort(l, load_marks(l), o);
    for (std::size_t i = 0; i < o.count; ++i) {
      const box* b = l->value[o.pairs[i].slot];
      visit(detail::block_of<Memory>(b));
      values::visit_blocks(b->value, visit);
    }
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check() const {
  survey s{first_leaf(), nullptr, nullptr};
  if (root_.load() == nullptr) {
    if (height_ != 0) return detail::broken("b+ tree: an empty tree has a height");
    return {};
  }
  if (height_ > max_height) return detail::broken("b+ tree: the height is not plausible");
  if (auto r = check_below(root_, height_, true, s); !r) return r;
  if (s.next_leaf != nullptr) return detail::broken("b+ tree: the chain of leaves goes on beyond the last one");
  return {};
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_below(void* node, std::size_t height, bool is_root, survey& s) {
  if (node == nullptr) return detail::broken("b+ tree: a child is missing");
  if (height == 0) return check_leaf(static_cast<const leaf*>(node), is_root, s);
  return check_inner(static_cast<const inner*>(node), height, is_root, s);
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_leaf(const leaf* l, bool is_root, survey& s) {
  if (l != s.next_leaf) return detail::broken("b+ tree: the chain of leaves differs from their order in the tree");
  s.next_leaf = l->next;
  const marks m = load_marks(l);
  order o;
  sort(l, m, o);
  if (o.count < (is_root ? 1 : least)) return detail::broken("b+ tree: a leaf is less than a quarter full");
  for (std::size_t i = 0; i < o.count; ++i) {
    const auto& [key, slot] = o.pairs[i];
    if ((m[slot / 8] >> slot % 8 * 8 & 255) != mark_of(key)) return detail::broken("b+ tree: a mark is not its key's");
    if (i != 0 && !(o.pairs[i - 1].key < key)) return detail::broken("b+ tree: a key occurs twice in a leaf");
    if (!within(key, s)) return detail::broken("b+ tree: a key is outside of its leaf's bounds");
  }
  return {};
}

template <class K, class V, class Memory, std::size_t Pairs>
bool basic_bptree<K, V, Memory, Pairs>::within(const K& key, const survey& s) {
  return (s.low == nullptr || !(key < *s.low)) && (s.high == nullptr || key < *s.high);
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_inner(const inner* n, std::size_t height, bool is_root, survey& s) {
  const std::size_t count = n->count;
  if (count > Pairs || count < (is_root ? 1 : least)) return detail::broken("b+ tree: an inner node's fill is off");
  const K *const low = s.low, *const high = s.high;
  K before{}, after{};
  for (std::size_t i = 0; i <= count; ++i) {
    if (i != count) {
      after = keys::get(n->key[i]);
      if (!within(after, s)) return detail::broken("b+ tree: a key is outside of its inner node's bounds");
      if (i != 0 && !(before < after)) return detail::broken("b+ tree: keys of an inner node out of order");
    }
    s.low = i == 0 ? low : &before;
    s.high = i == count ? high : &after;
    if (auto r = check_below(n->child[i], height - 1, false, s); !r) return r;
    s.low = low;
    s.high = high;
    before = after;
  }
  return {};
}

}  // namespace stele
