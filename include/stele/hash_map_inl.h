// The members of hash_map; see hash_map.h for what they promise.
#pragma once

namespace stele {

// The place of one key. Valid until the map is changed other than through it.
template <class K, class V, class Memory>
class basic_hash_map<K, V, Memory>::entry {
 public:
  [[nodiscard]] bool exists() const { return place_.found != nullptr; }
  value_type& item() const { return place_.found->item; }  // exists()
  // Inserts the key with this value; not exists().
  value_type& insert(mapped_view value) {
    return map_.insert_node(place_, Memory::template make<node>(key_, value), key_)->item;
  }
  // Inserts the key with a zero value, or an empty container; not exists().
  value_type& insert() { return map_.insert_node(place_, Memory::template make<node>(key_), key_)->item; }
  // Erases the item; exists(). Ends the entry's use.
  void erase() { map_.erase_at(place_); }

 private:
  friend basic_hash_map;
  entry(basic_hash_map& map, key_view key) : map_(map), key_(key), place_(map.find_place(key)) {}
  iterator at() const { return iterator(map_, place_.found); }

  basic_hash_map& map_;
  std::remove_cvref_t<key_view> key_;  // a text's characters stay the caller's
  place place_;
};

// Goes over the items bucket by bucket. No node: the end.
template <class K, class V, class Memory>
template <class Item>
class basic_hash_map<K, V, Memory>::basic_iterator {
 public:
  using value_type = Item;
  using difference_type = std::ptrdiff_t;
  using reference = Item&;
  using pointer = Item*;
  using iterator_category = std::forward_iterator_tag;

  basic_iterator() = default;
  operator basic_iterator<const Item>() const { return {*map_, node_}; }
  Item& operator*() const { return node_->item; }
  Item* operator->() const { return &node_->item; }
  basic_iterator& operator++() {
    const node* last = node_;
    node_ = last->next;
    if (node_ == nullptr) next_chain(bucket_of(last) + 1);
    return *this;
  }
  basic_iterator operator++(int) {
    basic_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const basic_iterator& a, const basic_iterator& b) { return a.node_ == b.node_; }

 private:
  friend basic_hash_map;
  template <class>
  friend class basic_iterator;
  basic_iterator(const basic_hash_map& map, node* n) : map_(&map), node_(n) {}

  std::size_t bucket_of(const node* n) { return bucket_ == unknown ? bucket_ = map_->bucket_of(n) : bucket_; }
  void next_chain(std::size_t from) {
    const shape s{map_->shape_.load()};
    for (bucket_ = from; bucket_ < s.slots() && node_ == nullptr; ++bucket_) {
      node_ = map_->head_of(s, bucket_)->load().first;
    }
    --bucket_;
  }

  static constexpr std::size_t unknown = ~std::size_t{0};
  const basic_hash_map* map_ = nullptr;
  node* node_ = nullptr;
  std::size_t bucket_ = unknown;
};

// Looking.

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::chain_for_lookup(std::uint64_t hash) const -> chain {
  const shape s{shape_.load()};
  if (s.none()) return {};
  for (std::size_t bucket = hash & (s.slots() - 1);; bucket = parent_of(bucket)) {
    const chain c = head_of(s, bucket)->load();
    if (is_split(s, bucket, c)) return c;
  }
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_node(key_view key) const -> node* {
  for (node* n = chain_for_lookup(keys::hash_of(key)).first; n != nullptr; n = n->next) {
    if (keys::equal(n->item.first, key)) return n;
  }
  return nullptr;
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::node_at(key_view key) const -> node* {
  node* const n = find_node(key);
  return n != nullptr ? n : (detail::no_such_key(), n);
}

// The bucket whose chain holds the node now.
template <class K, class V, class Memory>
std::size_t basic_hash_map<K, V, Memory>::bucket_of(const node* n) const {
  const shape s{shape_.load()};
  std::size_t bucket = keys::hash_stored(n->item.first) & (s.slots() - 1);
  while (!is_split(s, bucket, head_of(s, bucket)->load())) bucket = parent_of(bucket);
  return bucket;
}

template <class K, class V, class Memory>
template <class F>
void basic_hash_map<K, V, Memory>::for_each_chain(F&& f) const {
  const shape s{shape_.load()};
  for (std::size_t bucket = 0; bucket < s.slots(); ++bucket) f(s, bucket, head_of(s, bucket)->load());
}

template <class K, class V, class Memory>
std::size_t basic_hash_map<K, V, Memory>::size() const {
  std::size_t sum = 0;
  for_each_chain([&](shape, std::size_t, const chain& c) { sum += c.length; });
  return sum;
}

template <class K, class V, class Memory>
template <class Iterator>
Iterator basic_hash_map<K, V, Memory>::first_item() const {
  Iterator it(*this, nullptr);
  if (!shape{shape_.load()}.none()) it.next_chain(0);
  return it;
}

// Changing.

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_place(key_view key) -> place {
  const shape s{shape_.load()};
  place p;
  if (s.none()) return p;
  const std::size_t bucket = keys::hash_of(key) & (s.slots() - 1);
  p.bucket = head_of(s, bucket);
  p.nodes = p.bucket->load();
  if (!is_split(s, bucket, p.nodes)) p.nodes = split_bucket(s, bucket)->load();
  for (node* n = p.nodes.first; n != nullptr; p.before = n, n = n->next, ++p.steps) {
    if (!keys::equal(n->item.first, key)) continue;
    p.found = n;
    return p;
  }
  return p;
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::insert_node(place& p, node* n, key_view key) -> node* {
  if (p.bucket == nullptr) {
    make_first_segment(least_buckets);
    p = find_place(key);
  }
  if (p.nodes.first != nullptr) n->next = p.nodes.first;
  p.nodes.first = n;
  ++p.nodes.length;
  p.bucket->store(p.nodes);
  p.before = nullptr;
  p.found = n;
  if (p.steps >= long_chain) {
    relieve(keys::hash_of(key) & (bucket_count() - 1));
    p = find_place(key);  // the chain may have moved
  }
  return n;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::erase_at(place& p) {
  node* const next = p.found->next;
  if (p.before == nullptr) {
    p.nodes.first = next;
  } else {
    p.before->next = next;
  }
  --p.nodes.length;
  p.bucket->store(p.nodes);
  Memory::destroy(p.found);
  p.found = nullptr;
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::insert(key_view key, mapped_view value) -> std::pair<iterator, bool> {
  entry e(*this, key);
  const bool fresh = !e.exists();
  if (fresh) e.insert(value);
  return {e.at(), fresh};
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::insert_or_assign(key_view key, mapped_view value) -> std::pair<iterator, bool> {
  entry e(*this, key);
  const bool fresh = !e.exists();
  if (fresh) {
    e.insert(value);
  } else {
    values::assign(e.item().second, value);
  }
  return {e.at(), fresh};
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::try_emplace(key_view key) -> std::pair<iterator, bool> {
  entry e(*this, key);
  const bool fresh = !e.exists();
  if (fresh) e.insert();
  return {e.at(), fresh};
}

template <class K, class V, class Memory>
std::size_t basic_hash_map<K, V, Memory>::erase(key_view key) {
  entry e(*this, key);
  if (!e.exists()) return 0;
  e.erase();
  return 1;
}

// Splits no bucket, as that would take items out of the iteration's way.
template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::erase(const_iterator at) -> iterator {
  iterator next(*this, at.node_);
  ++next;
  place p;
  p.bucket = head_of({shape_.load()}, bucket_of(at.node_));
  p.nodes = p.bucket->load();
  for (p.found = p.nodes.first; p.found != at.node_; p.found = p.found->next) p.before = p.found;
  erase_at(p);
  return next;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::release() {
  const shape s{shape_.load()};
  for_each_chain([](shape, std::size_t, const chain& c) {
    for (node* n = c.first; n != nullptr;) Memory::destroy(std::exchange(n, n->next.load()));
  });
  for (std::size_t i = 0; i < s.used_segments(); ++i) Memory::destroy_array(segment_[i].load(), s.size_of(i));
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::clear() {
  release();
  shape_ = 0;
}

// Buckets.

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::make_first_segment(std::size_t count) {
  segment_[0] = Memory::template make_array<head>(count);
  shape_ = shape::of_first(count).word;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::grow() {
  const shape s{shape_.load()};
  if (s.used_segments() == segments) return;
  segment_[s.used_segments()] = Memory::template make_array<head>(s.slots());
  shape_ = s.grown().word;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::reserve(std::size_t count) {
  const std::size_t wanted = std::bit_ceil(std::max(count, least_buckets));
  if (bucket_count() == 0) return make_first_segment(wanted);
  while (bucket_count() < wanted && shape{shape_.load()}.used_segments() < segments) grow();
}

// Moves what belongs to `bucket` out of its parent, which may have to be split off its own parent first.
template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::split_bucket(shape s, std::size_t bucket) -> head* {
  const std::size_t parent = parent_of(bucket);
  head* const from = head_of(s, parent);
  chain whole = from->load();
  if (!is_split(s, parent, whole)) whole = split_bucket(s, parent)->load();
  const std::size_t mask = 2 * std::bit_floor(bucket) - 1;
  chain kept{nullptr, 0, whole.split}, moved{nullptr, 0, true};
  for (node *n = whole.first, *next = nullptr; n != nullptr; n = next) {
    next = n->next;
    chain& to = (keys::hash_stored(n->item.first) & mask) == bucket ? moved : kept;
    if (next != to.first) n->next = to.first;
    to.first = n;
    ++to.length;
  }
  if (kept.first != whole.first || moved.length != 0) from->store(kept);
  head* const to = head_of(s, bucket);
  to->store(moved);
  return to;
}

// A chain has become long: split off what a past doubling left in it, or else double if the buckets around are as full.
template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::relieve(std::size_t bucket) {
  const shape s{shape_.load()};
  for (std::size_t bit = std::max(s.first(), std::bit_ceil(bucket + 1)); bit < s.slots(); bit *= 2) {
    if (head_of(s, bucket | bit)->load().split) continue;
    split_bucket(s, bucket | bit);
    return;
  }
  if (!crowded(s, bucket)) return;
  try {
    grow();
  } catch (const failure& f) {
    if (f.why().code != errc::full) throw;  // no room to double: the item is in, and long chains are still right
  }
}

// Whether the buckets around hold two items each on the mean. A single long chain is a matter of its hash and counts little.
template <class K, class V, class Memory>
bool basic_hash_map<K, V, Memory>::crowded(shape s, std::size_t bucket) const {
  const std::size_t size = std::min(group, s.slots());
  const std::size_t start = bucket / size * size;
  std::size_t items = 0;
  for (std::size_t i = start; i < start + size; ++i) items += std::min(head_of(s, i)->load().length, long_chain);
  return items >= 2 * size;
}

// Examining.

template <class K, class V, class Memory>
template <class Visit>
void basic_hash_map<K, V, Memory>::visit_blocks(Visit&& visit) const {
  for (std::size_t i = 0; i < shape{shape_.load()}.used_segments(); ++i) visit(static_cast<const void*>(segment_[i].load()));
  for_each_chain([&](shape, std::size_t, const chain& c) {
    for (const node* n = c.first; n != nullptr; n = n->next) {
      visit(detail::block_of<Memory>(n));
      keys::visit_blocks(n->item.first, visit);
      values::visit_blocks(n->item.second, visit);
    }
  });
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check() const {
  result<> outcome = check_segments({shape_.load()});
  if (!outcome) return outcome;
  for_each_chain([&](shape s, std::size_t bucket, const chain& c) {
    if (outcome) outcome = check_chain(s, bucket, c);
  });
  return outcome;
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check_segments(shape s) const {
  if (s.none()) return {};
  if (!s.sane(segments) || s.first() < least_buckets) return detail::broken("hash map: its number of buckets is none that it can have");
  for (std::size_t i = 0; i < s.used_segments(); ++i) detail::claim<Memory>(segment_[i].load(), s.size_of(i) * sizeof(head));
  return {};
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check_chain(shape s, std::size_t bucket, const chain& c) const {
  if (!is_split(s, bucket, c) && c.length != 0) return detail::broken("hash map: nodes in a bucket not yet split off");
  std::size_t length = 0;
  for (const node* n = c.first; n != nullptr; n = n->next) {
    detail::claim<Memory>(detail::block_of<Memory>(n), sizeof(node));
    if (++length > c.length) return detail::broken("hash map: a chain is longer than its bucket says");
    const std::uint64_t hash = keys::hash_stored(n->item.first);
    if (chain_for_lookup(hash).first != c.first) return detail::broken("hash map: an item is not in its key's bucket");
    for (const node* other = c.first; other != n; other = other->next) {
      if (keys::equal(n->item.first, keys::get(other->item.first))) return detail::broken("hash map: a key occurs twice");
    }
  }
  if (length != c.length) return detail::broken("hash map: a chain is shorter than its bucket says");
  return {};
}

}  // namespace stele
