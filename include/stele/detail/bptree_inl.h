// The members of bptree; bptree.h has their contracts. Inspection and joining of nodes are in
// bptree_erase.h.
#pragma once

namespace stele {

// The position of one key. Valid until the tree is changed by other means than this entry.
template <class K, class V, class Memory, std::size_t Pairs>
class basic_bptree<K, V, Memory, Pairs>::entry {
 public:
  [[nodiscard]] bool exists() const { return position_.slot != Pairs; }
  // requires exists()
  mapped_stored& value() const { return value_in(position_.at, position_.slot); }
  // Inserts the key with this value. Requires !exists(). The entry is invalid afterwards, as after
  // erase.
  mapped_stored& insert(mapped_view value) { return tree_.insert_at(position_, key_, value); }
  // Erases the pair. Requires exists().
  void erase() { tree_.erase_at(position_); }

 private:
  friend basic_bptree;
  entry(basic_bptree& tree, key_view key) : tree_(tree), key_(key) {
    tree.find_position(key, position_);
  }

  basic_bptree& tree_;
  K key_;
  position position_;
};

// Visits the pairs in key order, using a sorted copy of the current leaf's keys.
template <class K, class V, class Memory, std::size_t Pairs>
template <class Stored>
class basic_bptree<K, V, Memory, Pairs>::basic_iterator {
 public:
  using value_type = basic_item<Stored>;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  value_type operator*() const {
    return {sorted_.pairs[index_].key, value_in(leaf_, sorted_.pairs[index_].slot)};
  }
  value_type operator->() const { return **this; }
  basic_iterator& operator++() {
    if (++index_ == sorted_.count) enter(leaf_->next);
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const basic_iterator& it, std::default_sentinel_t) {
    return it.leaf_ == nullptr;
  }

 private:
  friend basic_bptree;
  explicit basic_iterator(leaf* l) { enter(l); }
  void enter(leaf* l) {
    leaf_ = l;
    index_ = 0;
    if (l != nullptr) sort(l, load_fingerprints(l), sorted_);
  }
  void skip_less_than(key_view key) {
    while (index_ < sorted_.count && sorted_.pairs[index_].key < key) ++index_;
    if (leaf_ != nullptr && index_ == sorted_.count) enter(leaf_->next);
  }

  leaf* leaf_ = nullptr;
  std::size_t index_ = 0;
  sorted_pairs sorted_;
};

// Leaves.

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::load_fingerprints(const leaf* l) -> fingerprints {
  fingerprints m;
  Memory::load_bytes(m.data(), l->fingerprint, sizeof m);
  return m;
}

// The top bit of each byte of `word` that equals `fingerprint`. Exact, unlike the shorter test, in
// which a carry passes between bytes.
template <class K, class V, class Memory, std::size_t Pairs>
std::uint64_t basic_bptree<K, V, Memory, Pairs>::slots_matching(std::uint64_t word,
                                                                std::uint64_t fingerprint) {
  constexpr std::uint64_t ones = 0x0101'0101'0101'0101, low = 0x7F7F'7F7F'7F7F'7F7F;
  const std::uint64_t x = word ^ (fingerprint * ones);
  return ~(((x & low) + low) | x | low);
}

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::count_of(const fingerprints& m) {
  std::size_t count = Pairs;
  for (const std::uint64_t word : m)
    count -= (slots_matching(word, 0) >> 7) * 0x0101'0101'0101'0101 >> 56;  // adds up the bytes
  return count;
}

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::find_free_slot(const fingerprints& m) {
  for (std::size_t i = 0; i < fingerprint_words; ++i) {
    if (const std::uint64_t bits = slots_matching(m[i], 0))
      return i * 8 + static_cast<std::size_t>(std::countr_zero(bits)) / 8;
  }
  return Pairs;
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::set_fingerprint(fingerprints& m, std::size_t slot,
                                                        std::uint64_t fingerprint) {
  const std::size_t shift = slot % 8 * 8;
  m[slot / 8] = (m[slot / 8] & ~(std::uint64_t{255} << shift)) | fingerprint << shift;
}

// The first slot with a fingerprint for which wanted(slot) is true, or Pairs.
template <class K, class V, class Memory, std::size_t Pairs>
template <class Wanted>
std::size_t basic_bptree<K, V, Memory, Pairs>::find_matching(const fingerprints& m,
                                                             std::uint64_t fingerprint,
                                                             Wanted&& wanted) {
  for (std::size_t i = 0; i < fingerprint_words; ++i) {
    for (std::uint64_t bits = slots_matching(m[i], fingerprint); bits != 0; bits &= bits - 1) {
      const std::size_t slot = i * 8 + static_cast<std::size_t>(std::countr_zero(bits)) / 8;
      if (wanted(slot)) return slot;
    }
  }
  return Pairs;
}

// The slot of a key, or Pairs.
template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::find_slot(const leaf* l, const fingerprints& m,
                                                         key_view key) {
  return find_matching(m, fingerprint_of(key),
                       [&](std::size_t slot) { return keys::equal(l->key[slot], key); });
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::sort(const leaf* l, const fingerprints& m,
                                             sorted_pairs& o) {
  o.count = 0;
  for (std::size_t slot = 0; slot < Pairs; ++slot) {
    if ((m[slot / 8] >> slot % 8 * 8 & 255) != 0)
      o.pairs[o.count++] = {keys::get(l->key[slot]), slot};
  }
  std::sort(o.pairs.begin(), o.pairs.begin() + o.count,
            [](const keyed_slot& a, const keyed_slot& b) { return a.key < b.key; });
}

// Moves pairs to free slots of another leaf. The source only clears their fingerprints.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::move_pairs(leaf* from, fingerprints& from_fingerprints,
                                                   leaf* to, fingerprints& to_fingerprints,
                                                   const keyed_slot* first, std::size_t count) {
  const fingerprints from_before = from_fingerprints, to_before = to_fingerprints;
  for (const keyed_slot* pair = first; pair != first + count; ++pair) {
    const std::size_t slot = find_free_slot(to_fingerprints);
    keys::assign(to->key[slot], pair->key);
    to->value[slot] = from->value[pair->slot];
    set_fingerprint(to_fingerprints, slot,
                    from_fingerprints[pair->slot / 8] >> pair->slot % 8 * 8 & 255);
    set_fingerprint(from_fingerprints, pair->slot, 0);
  }
  store_fingerprints(from, from_before, from_fingerprints);
  store_fingerprints(to, to_before, to_fingerprints);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::store_fingerprints(leaf* l, const fingerprints& before,
                                                           const fingerprints& now) {
  for (std::size_t i = 0; i < fingerprint_words; ++i) {
    if (before[i] != now[i]) l->fingerprint[i] = now[i];
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::value_in(leaf* l, std::size_t slot) -> mapped_stored& {
  if constexpr (boxed) {
    return l->value[slot].load()->value;
  } else {
    return l->value[slot];
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::store_value(leaf* l, std::size_t slot, mapped_view value) {
  if constexpr (boxed) {
    l->value[slot] = Memory::template make<box>(value);
  } else {
    l->value[slot] = value;
  }
}

// The path from the root.

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::child_for(const inner* n, key_view key) {
  std::size_t from = 0;
  for (std::size_t left = n->count; left != 0;) {
    const std::size_t half = left / 2;
    const bool beyond = keys::compare(key, n->key[from + half]) >= 0;
    from = beyond ? from + half + 1 : from;
    left = beyond ? left - half - 1 : half;
  }
  return from;
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::find_position(key_view key, position& p) const {
  void* node = root_;
  p.depth = height_;
  for (std::size_t i = 0; i < p.depth; ++i) {
    inner* const n = static_cast<inner*>(node);
    p.steps[i] = {n, child_for(n, key)};
    node = n->child[p.steps[i].child];
  }
  p.at = static_cast<leaf*>(node);
  p.slot = Pairs;
  if (p.at == nullptr) return;
  p.leaf_fingerprints = load_fingerprints(p.at);
  p.slot = find_slot(p.at, p.leaf_fingerprints, key);
}

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::first_leaf() const -> leaf* {
  static_assert(sizeof(leaf) <= node_bytes && sizeof(inner) <= node_bytes);
  void* node = root_;
  for (std::size_t i = height_; i != 0; --i) node = static_cast<inner*>(node)->child[0];
  return static_cast<leaf*>(node);
}

template <class K, class V, class Memory, std::size_t Pairs>
template <class Iterator>
Iterator basic_bptree<K, V, Memory, Pairs>::bound(key_view key) const {
  position p;
  find_position(key, p);
  Iterator it(p.at);
  it.skip_less_than(key);
  return it;
}

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::find(key_view key) -> mapped_stored* {
  position p;
  find_position(key, p);
  return p.slot == Pairs ? nullptr : &value_in(p.at, p.slot);
}

// Starts loading what a lookup reads first: all fingerprints of a leaf; of an inner node the count,
// and the keys that its binary search compares first.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::prefetch_node(const void* node, bool is_leaf) {
  const char* const at = static_cast<const char*>(node);
  if (is_leaf) {
    for (std::size_t i = 0; i < sizeof(fingerprints) + 8; i += detail::line_size)
      Memory::prefetch(at + i);
  } else {
    Memory::prefetch(at);
    for (const std::size_t eighth : {4u, 2u, 6u, 1u, 3u, 5u, 7u})
      Memory::prefetch(&static_cast<const inner*>(node)->key[Pairs * eighth / 8]);
  }
}

// Looks up at most keys_in_group keys: level by level, then the leaves' fingerprints, then a pair
// of each leaf, each prefetched for all keys before the first of them is loaded.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::find_group(std::span<const K> wanted,
                                                   group_results& results) const {
  std::array<void*, keys_in_group> nodes;
  std::array<fingerprints, keys_in_group> matching;
  nodes.fill(root_);
  for (std::size_t level = height_; level != 0; --level) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      inner* const n = static_cast<inner*>(nodes[i]);
      nodes[i] = n->child[child_for(n, wanted[i])];
      prefetch_node(nodes[i], level == 1);
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const leaf* const l = static_cast<leaf*>(nodes[i]);
    matching[i] = load_fingerprints(l);
    find_matching(matching[i], fingerprint_of(wanted[i]), [&](std::size_t slot) {
      Memory::prefetch(&l->key[slot]);
      Memory::prefetch(&l->value[slot]);
      return false;
    });
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    leaf* const l = static_cast<leaf*>(nodes[i]);
    const std::size_t slot = find_slot(l, matching[i], wanted[i]);
    results[i] = slot == Pairs ? nullptr : &value_in(l, slot);
    if constexpr (boxed) Memory::prefetch(results[i]);
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
template <class Each>
void basic_bptree<K, V, Memory, Pairs>::find_many(std::span<const K> wanted, Each&& each) const {
  group_results results{};  // null in an empty tree
  const bool is_empty = root_.load() == nullptr;
  for (std::size_t from = 0; from < wanted.size(); from += keys_in_group) {
    const std::size_t count = std::min(keys_in_group, wanted.size() - from);
    if (!is_empty) find_group(wanted.subspan(from, count), results);
    for (std::size_t i = 0; i < count; ++i)
      each(from + i, static_cast<const mapped_stored*>(results[i]));
  }
}

template <class K, class V, class Memory, std::size_t Pairs>
std::size_t basic_bptree<K, V, Memory, Pairs>::size() const {
  std::size_t count = 0;
  for (const leaf* l = first_leaf(); l != nullptr; l = l->next)
    count += count_of(load_fingerprints(l));
  return count;
}

// Inserting.

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::insert(key_view key, mapped_view value)
    -> std::pair<mapped_stored*, bool> {
  position p;
  find_position(key, p);
  if (p.slot != Pairs) return {&value_in(p.at, p.slot), false};
  return {&insert_at(p, key, value), true};
}

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::insert_or_assign(key_view key, mapped_view value)
    -> std::pair<mapped_stored*, bool> {
  const auto [stored, fresh] = insert(key, value);
  if (!fresh) values::assign(*stored, value);
  return {stored, fresh};
}

template <class K, class V, class Memory, std::size_t Pairs>
auto basic_bptree<K, V, Memory, Pairs>::insert_at(position& p, key_view key, mapped_view value)
    -> mapped_stored& {
  if (p.at == nullptr) {
    p.at = Memory::template make<leaf>();
    p.leaf_fingerprints = {};
    root_ = p.at;
  }
  p.slot = find_free_slot(p.leaf_fingerprints);
  if (p.slot == Pairs) {
    split_leaf(p, key);
    p.slot = find_free_slot(p.leaf_fingerprints);
  }
  keys::assign(p.at->key[p.slot], key);
  store_value(p.at, p.slot, value);
  set_fingerprint(p.leaf_fingerprints, p.slot, fingerprint_of(key));
  p.at->fingerprint[p.slot / 8] = p.leaf_fingerprints[p.slot / 8];
  return value_in(p.at, p.slot);
}

// Splits the full leaf at the path's end; the path then ends at the half where `key` belongs. If
// keys only grow, the left leaf stays three quarters full.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::split_leaf(position& p, key_view key) {
  leaf* const left = p.at;
  leaf* const right = Memory::template make<leaf>();
  fingerprints right_fingerprints{};
  sorted_pairs o;
  sort(left, p.leaf_fingerprints, o);
  const bool growing = left->next.load() == nullptr && o.pairs[Pairs - 1].key < key;
  const std::size_t kept = growing ? merge_limit : Pairs / 2;
  move_pairs(left, p.leaf_fingerprints, right, right_fingerprints, &o.pairs[kept], Pairs - kept);
  right->next = left->next.load();
  left->next = right;
  insert_separator(p, p.depth, o.pairs[kept].key, right);
  if (key < o.pairs[kept].key) return;
  p.at = right;
  p.leaf_fingerprints = right_fingerprints;
}

// Inserts `right`, whose first key is `key`, after the child that the path follows at `depth`.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::insert_separator(position& p, std::size_t depth,
                                                         const K& key, void* right) {
  if (depth == 0) return add_root(key, right);
  const auto [n, at] = p.steps[depth - 1];
  const std::size_t count = n->count;
  if (count == Pairs) return split_inner(p, depth, key, right);
  for (std::size_t i = count; i > at; --i) {
    n->key[i] = n->key[i - 1];
    n->child[i + 1] = n->child[i];
  }
  keys::assign(n->key[at], key);
  n->child[at + 1] = right;
  n->count = count + 1;
}

// insert_separator for a full node: the middle key moves up, the keys after it move to a new node.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::split_inner(position& p, std::size_t depth, const K& key,
                                                    void* right) {
  const auto [n, at] = p.steps[depth - 1];
  inner_copy copy;
  load_inner(n, copy);
  std::copy_backward(&copy.key[at], &copy.key[Pairs], &copy.key[Pairs + 1]);
  std::copy_backward(&copy.child[at + 1], &copy.child[Pairs + 1], &copy.child[Pairs + 2]);
  copy.key[at] = key;
  copy.child[at + 1] = right;
  constexpr std::size_t half = Pairs / 2;
  inner* const beyond = Memory::template make<inner>();
  store_inner(beyond, copy, half + 1, Pairs - half);
  store_inner(n, copy, 0, half);
  insert_separator(p, depth - 1, copy.key[half], beyond);
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::add_root(const K& key, void* right) {
  inner* const n = Memory::template make<inner>();
  keys::assign(n->key[0], key);
  n->child[0] = root_.load();
  n->child[1] = right;
  n->count = 1;
  root_ = n;
  height_ += 1;
}

// Appends the node's keys and children to the copy.
template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::load_inner(const inner* n, inner_copy& copy) {
  const std::size_t count = n->count;
  for (std::size_t i = 0; i < count; ++i) copy.key[copy.count + i] = keys::get(n->key[i]);
  for (std::size_t i = 0; i <= count; ++i) copy.child[copy.count + i] = n->child[i];
  copy.count += count;
}

template <class K, class V, class Memory, std::size_t Pairs>
void basic_bptree<K, V, Memory, Pairs>::store_inner(inner* n, const inner_copy& copy,
                                                    std::size_t from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) keys::assign(n->key[i], copy.key[from + i]);
  for (std::size_t i = 0; i <= count; ++i) n->child[i] = copy.child[from + i];
  n->count = count;
}

}  // namespace stele

#include <stele/detail/bptree_erase.h>
