// The members of bptree that erase and inspect; bptree.h has their contracts.
#pragma once

namespace stele {

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::erase(key_view key) {
  position p;
  find_position(key, p);
  if (p.slot == Pairs) return 0;
  erase_at(p);
  return 1;
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::erase_at(position& p) {
  if constexpr (boxed) Memory::destroy(p.at->value[p.slot].load());
  set_fingerprint(p.leaf_fingerprints, p.slot, 0);
  p.at->fingerprint[p.slot / 8] = p.leaf_fingerprints[p.slot / 8];
  p.slot = Pairs;
  const std::size_t count = count_of(p.leaf_fingerprints);
  if (p.depth != 0 && count < min_pairs) return rebalance_leaf(p);
  if (p.depth == 0 && count == 0) {
    Memory::destroy(p.at);
    root_ = nullptr;
  }
}

// The leaf at the path's end is less than a quarter full: joins it with a sibling, or moves pairs
// between the two.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::rebalance_leaf(position& p) {
  const auto [parent, at] = p.steps[p.depth - 1];
  const std::size_t i = at < parent->count ? at : at - 1;  // the separator of the two leaves
  leaf* const left = static_cast<leaf*>(parent->child[i].load());
  leaf* const right = static_cast<leaf*>(parent->child[i + 1].load());
  fingerprints left_fingerprints = load_fingerprints(left),
               right_fingerprints = load_fingerprints(right);
  if (count_of(left_fingerprints) + count_of(right_fingerprints) > merge_limit) {
    return keys::assign(parent->key[i],
                        redistribute_leaves(left, left_fingerprints, right, right_fingerprints));
  }
  sorted_pairs o;
  sort(right, right_fingerprints, o);
  move_pairs(right, right_fingerprints, left, left_fingerprints, o.pairs.data(), o.count);
  left->next = right->next.load();
  Memory::destroy(right);
  remove_separator(p, p.depth, i);
}

// Returns the new separator of the two leaves.
template <class K, class V, class Memory, std::size_t Pairs>
K basic_bptree<K, V, Memory, Pairs>::redistribute_leaves(leaf* left, fingerprints left_fingerprints,
                                                         leaf* right,
                                                         fingerprints right_fingerprints) {
  sorted_pairs l, r;
  sort(left, left_fingerprints, l);
  sort(right, right_fingerprints, r);
  if (l.count > r.count) {
    const std::size_t kept = l.count - (l.count - r.count) / 2;
    move_pairs(left, left_fingerprints, right, right_fingerprints, &l.pairs[kept], l.count - kept);
    return l.pairs[kept].key;
  }
  const std::size_t moved = (r.count - l.count) / 2;
  move_pairs(right, right_fingerprints, left, left_fingerprints, r.pairs.data(), moved);
  return r.pairs[moved].key;
}

// Removes key i and child i + 1 of the inner node that the path passes at `depth`.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::remove_separator(position& p, std::size_t depth,
                                                         std::size_t i) {
  inner* const n = p.steps[depth - 1].node;
  const std::size_t count = n->count;
  for (; i + 1 < count; ++i) {
    n->key[i] = n->key[i + 1];
    n->child[i + 1] = n->child[i + 2];
  }
  n->count = count - 1;
  if (depth != 1 && count - 1 < min_pairs) return rebalance_inner(p, depth);
  if (depth == 1 && count == 1) {
    root_ = n->child[0].load();
    height_ -= 1;
    Memory::destroy(n);
  }
}

// rebalance_leaf for the inner node at `depth`.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::rebalance_inner(position& p, std::size_t depth) {
  const auto [parent, at] = p.steps[depth - 2];
  const std::size_t i = at < parent->count ? at : at - 1;
  inner* const left = static_cast<inner*>(parent->child[i].load());
  inner* const right = static_cast<inner*>(parent->child[i + 1].load());
  inner_copy copy;
  load_inner(left, copy);
  copy.key[copy.count++] = keys::get(parent->key[i]);
  load_inner(right, copy);
  if (copy.count <= merge_limit) {
    store_inner(left, copy, 0, copy.count);
    Memory::destroy(right);
    return remove_separator(p, depth - 1, i);
  }
  const std::size_t half = copy.count / 2;
  store_inner(left, copy, 0, half);
  keys::assign(parent->key[i], copy.key[half]);
  store_inner(right, copy, half + 1, copy.count - half - 1);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::free_blocks(void* node, std::size_t height) {
  if (node == nullptr) return;
  if (height != 0) {
    inner* const n = static_cast<inner*>(node);
    for (std::size_t i = 0; i <= n->count; ++i) free_blocks(n->child[i], height - 1);
    return Memory::destroy(n);
  }
  leaf* const l = static_cast<leaf*>(node);
  if constexpr (boxed) {
    sorted_pairs o;
    sort(l, load_fingerprints(l), o);
    for (std::size_t i = 0; i < o.count; ++i) Memory::destroy(l->value[o.pairs[i].slot].load());
  }
  Memory::destroy(l);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::clear() {
  free_blocks(root_, height_);
  root_ = nullptr;
  height_ = 0;
}

// Inspection.

template <class K, class V, class Memory, std::size_t Pairs>
template <class Visit>
void basic_bptree<K, V, Memory, Pairs>::visit_subtree(void* node, std::size_t height,
                                                      Visit& visit) {
  if (node == nullptr) return;
  visit(static_cast<const void*>(node));
  if (height != 0) {
    const inner* n = static_cast<const inner*>(node);
    for (std::size_t i = 0; i <= n->count; ++i)
      visit_subtree(n->child[i].load(), height - 1, visit);
  } else if constexpr (boxed) {
    leaf* const l = static_cast<leaf*>(node);
    sorted_pairs o;
    sort(l, load_fingerprints(l), o);
    for (std::size_t i = 0; i < o.count; ++i) {
      const box* b = l->value[o.pairs[i].slot];
      visit(detail::block_of<Memory>(b));
      values::visit_blocks(b->value, visit);
    }
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check() const {
  check_state s{first_leaf(), nullptr, nullptr};
  if (root_.load() == nullptr) {
    if (height_ != 0) return detail::corrupt_error("b+ tree: an empty tree has a height");
    return {};
  }
  if (height_ > max_height) return detail::corrupt_error("b+ tree: the height is not plausible");
  if (auto r = check_subtree(root_, height_, true, s); !r) return r;
  if (s.next_leaf != nullptr)
    return detail::corrupt_error("b+ tree: the chain of leaves goes on beyond the last one");
  return {};
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_subtree(void* node, std::size_t height,
                                                          bool is_root, check_state& s) {
  if (node == nullptr) return detail::corrupt_error("b+ tree: a child is missing");
  if (height == 0) return check_leaf(static_cast<const leaf*>(node), is_root, s);
  return check_inner(static_cast<const inner*>(node), height, is_root, s);
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_leaf(const leaf* l, bool is_root,
                                                       check_state& s) {
  if (l != s.next_leaf)
    return detail::corrupt_error(
        "b+ tree: the chain of leaves differs from their order in the tree");
  s.next_leaf = l->next;
  const fingerprints m = load_fingerprints(l);
  sorted_pairs o;
  sort(l, m, o);
  if (o.count < (is_root ? 1 : min_pairs))
    return detail::corrupt_error("b+ tree: a leaf is less than a quarter full");
  for (std::size_t i = 0; i < o.count; ++i) {
    const auto& [key, slot] = o.pairs[i];
    if ((m[slot / 8] >> slot % 8 * 8 & 255) != fingerprint_of(key))
      return detail::corrupt_error("b+ tree: a fingerprint is not its key's");
    if (i != 0 && !(o.pairs[i - 1].key < key))
      return detail::corrupt_error("b+ tree: a key occurs twice in a leaf");
    if (!within(key, s))
      return detail::corrupt_error("b+ tree: a key is outside of its leaf's bounds");
  }
  return {};
}

template <class K, class V, class Memory, std::size_t Pairs>
bool basic_bptree<K, V, Memory, Pairs>::within(const K& key, const check_state& s) {
  return (s.low == nullptr || !(key < *s.low)) && (s.high == nullptr || key < *s.high);
}

template <class K, class V, class Memory, std::size_t Pairs>
result<> basic_bptree<K, V, Memory, Pairs>::check_inner(const inner* n, std::size_t height,
                                                        bool is_root, check_state& s) {
  const std::size_t count = n->count;
  if (count > Pairs || count < (is_root ? 1 : min_pairs))
    return detail::corrupt_error("b+ tree: an inner node's fill is off");
  const K *const low = s.low, *const high = s.high;
  K before{}, after{};
  for (std::size_t i = 0; i <= count; ++i) {
    if (i != count) {
      after = keys::get(n->key[i]);
      if (!within(after, s))
        return detail::corrupt_error("b+ tree: a key is outside of its inner node's bounds");
      if (i != 0 && !(before < after))
        return detail::corrupt_error("b+ tree: keys of an inner node out of order");
    }
    s.low = i == 0 ? low : &before;
    s.high = i == count ? high : &after;
    if (auto r = check_subtree(n->child[i], height - 1, false, s); !r) return r;
    s.low = low;
    s.high = high;
    before = after;
  }
  return {};
}

}  // namespace stele
