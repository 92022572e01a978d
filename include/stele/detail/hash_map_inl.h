// The members of hash_map; hash_map.h has their contracts.
#pragma once

namespace stele {

// The position of one key. Valid until the map is changed by other means than this entry.
template <class K, class V, class Memory>
class basic_hash_map<K, V, Memory>::entry {
 public:
  [[nodiscard]] bool exists() const { return position_.found != nullptr; }
  value_type& item() const { return position_.found->item; }  // requires exists()
  // Inserts the key with this value. Requires !exists().
  value_type& insert(mapped_view value) {
    return map_.insert_node(position_, Memory::template make<node>(key_, value), key_)->item;
  }
  // Inserts the key with a zero value or an empty container. Requires !exists().
  value_type& insert() {
    return map_.insert_node(position_, Memory::template make<node>(key_), key_)->item;
  }
  // Erases the item. Requires exists(). The entry is invalid afterwards.
  void erase() { map_.erase_at(position_); }

 private:
  friend basic_hash_map;
  entry(basic_hash_map& map, key_view key)
      : map_(map), key_(key), position_(map.find_position(key)) {}
  iterator at() const { return iterator(map_, position_.found); }

  basic_hash_map& map_;
  std::remove_cvref_t<key_view> key_;  // a string key is a view of the caller's characters
  position position_;
};

// Visits the items bucket by bucket. A null node is the end.
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
  friend bool operator==(const basic_iterator& a, const basic_iterator& b) {
    return a.node_ == b.node_;
  }

 private:
  friend basic_hash_map;
  template <class>
  friend class basic_iterator;
  basic_iterator(const basic_hash_map& map, node* n) : map_(&map), node_(n) {}

  std::size_t bucket_of(const node* n) {
    return bucket_ == no_bucket ? bucket_ = map_->bucket_of(n) : bucket_;
  }
  void next_chain(std::size_t from) {
    const sizes s = map_->shape();
    for (bucket_ = from; bucket_ < s.slots() && node_ == nullptr; ++bucket_) {
      node_ = map_->bucket_at(s, bucket_)->load().first;
    }
    --bucket_;
  }

  static constexpr std::size_t no_bucket = ~std::size_t{0};
  const basic_hash_map* map_ = nullptr;
  node* node_ = nullptr;
  std::size_t bucket_ = no_bucket;
};

// Lookup.

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_chain(std::uint64_t hash) const -> chain {
  const sizes s = shape();
  if (s.empty()) return {};
  for (std::size_t bucket = hash & (s.slots() - 1);; bucket = parent_of(bucket)) {
    const chain c = bucket_at(s, bucket)->load();
    if (is_split(s, bucket, c)) return c;
  }
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_in_chain(node* first, key_view key) -> node* {
  chain_check c;
  for (node* n = first; n != nullptr; n = n->next) {
    c.step(n);
    if (keys::equal(n->item.first, key)) return n;
  }
  return nullptr;
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_node(key_view key) const -> node* {
  return find_in_chain(find_chain(keys::hash_of(key)).first, key);
}

template <class K, class V, class Memory>
template <class Each>
void basic_hash_map<K, V, Memory>::find_many(std::span<const std::remove_cvref_t<key_view>> wanted,
                                             Each&& each) const {
  struct lookup {
    std::uint64_t hash;
    node* first;
  };
  const sizes s = shape();
  detail::pipeline_items<lookup, 3> lookups;
  detail::run_pipeline(
      wanted.size(),
      [&](std::size_t i) {
        const std::uint64_t hash = keys::hash_of(wanted[i]);
        lookups[i] = {hash, nullptr};
        if (!s.empty()) Memory::prefetch(bucket_at(s, hash & (s.slots() - 1)));
      },
      [&](std::size_t i) {
        lookups[i].first = find_chain(lookups[i].hash).first;
        Memory::prefetch(lookups[i].first);
      },
      [&](std::size_t i) {
        const node* const n = find_in_chain(lookups[i].first, wanted[i]);
        each(i, n == nullptr ? nullptr : &n->item.second);
      });
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::node_at(key_view key) const -> node* {
  node* const n = find_node(key);
  return n != nullptr ? n : (detail::throw_key_not_found(), n);
}

// The bucket whose chain contains the node now.
template <class K, class V, class Memory>
std::size_t basic_hash_map<K, V, Memory>::bucket_of(const node* n) const {
  const sizes s = shape();
  std::size_t bucket = keys::hash_stored(n->item.first) & (s.slots() - 1);
  while (!is_split(s, bucket, bucket_at(s, bucket)->load())) bucket = parent_of(bucket);
  return bucket;
}

template <class K, class V, class Memory>
template <class F>
void basic_hash_map<K, V, Memory>::for_each_chain(F&& f) const {
  const sizes s = shape();
  for (std::size_t bucket = 0; bucket < s.slots(); ++bucket)
    f(s, bucket, bucket_at(s, bucket)->load());
}

template <class K, class V, class Memory>
template <class F>
void basic_hash_map<K, V, Memory>::for_each(F&& f) const {
  const sizes s = shape();
  detail::pipeline_items<const node*, 2> first;
  detail::run_pipeline(
      s.slots(),
      [&](std::size_t bucket) {
        first[bucket] = bucket_at(s, bucket)->load().first;
        Memory::prefetch(first[bucket]);
      },
      [&](std::size_t bucket) {
        chain_check c;
        for (const node* n = first[bucket]; n != nullptr; n = n->next) {
          c.step(n);
          f(n->item.first, n->item.second);
        }
      });
}

// The cursor is a bucket's number, and counts with its bits in reverse: the top bit is flipped
// first, and a carry goes down. So a bucket comes right before the buckets that split off it, and a
// doubling only divides what is not yet visited: what was visited stays so. This is the cursor of
// Noordhuis (dictScan of Redis). Departure: buckets never become fewer, and the items of a bucket
// not yet split off are found in its parent's chain by their hash values.
template <class K, class V, class Memory>
template <class F>
std::uint64_t basic_hash_map<K, V, Memory>::scan(std::uint64_t cursor, F&& f) const {
  const sizes s = shape();
  if (s.empty()) return 0;
  const std::size_t mask = s.slots() - 1;
  std::size_t bucket = cursor & mask;
  chain_check c;
  for (const node* n = find_chain(bucket).first; n != nullptr; n = n->next) {
    c.step(n);
    if ((keys::hash_stored(n->item.first) & mask) == bucket) f(n->item.first, n->item.second);
  }
  for (std::size_t bit = s.slots() / 2; bit != 0; bit /= 2) {
    bucket ^= bit;
    if ((bucket & bit) != 0) return bucket;
  }
  return 0;
}

template <class K, class V, class Memory>
std::size_t basic_hash_map<K, V, Memory>::size() const {
  std::size_t sum = 0;
  for_each_chain([&](sizes, std::size_t, const chain& c) { sum += c.length; });
  return sum;
}

template <class K, class V, class Memory>
template <class Iterator>
Iterator basic_hash_map<K, V, Memory>::first_item() const {
  Iterator it(*this, nullptr);
  if (!shape().empty()) it.next_chain(0);
  return it;
}

// Changes.

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::find_position(key_view key) -> position {
  const sizes s = shape();
  position p;
  if (s.empty()) return p;
  const std::size_t bucket = keys::hash_of(key) & (s.slots() - 1);
  p.bucket = bucket_at(s, bucket);
  p.nodes = p.bucket->load();
  if (!is_split(s, bucket, p.nodes)) p.nodes = split_bucket(s, bucket)->load();
  chain_check c;
  for (node* n = p.nodes.first; n != nullptr; p.before = n, n = n->next, ++p.nodes_scanned) {
    c.step(n);
    if (!keys::equal(n->item.first, key)) continue;
    p.found = n;
    return p;
  }
  return p;
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::insert_node(position& p, node* n, key_view key) -> node* {
  if (p.bucket == nullptr) {
    make_first_segment(min_buckets);
    p = find_position(key);
  }
  if (p.nodes.first != nullptr) n->next = p.nodes.first;
  p.nodes.first = n;
  ++p.nodes.length;
  p.bucket->store(p.nodes);
  p.before = nullptr;
  p.found = n;
  if (p.nodes_scanned >= max_chain_length) {
    split_or_grow(keys::hash_of(key) & (bucket_count() - 1));
    p = find_position(key);  // the split may have moved the chain
  }
  return n;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::erase_at(position& p) {
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
auto basic_hash_map<K, V, Memory>::insert(key_view key, mapped_view value)
    -> std::pair<iterator, bool> {
  entry e(*this, key);
  const bool fresh = !e.exists();
  if (fresh) e.insert(value);
  return {e.at(), fresh};
}

template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::insert_or_assign(key_view key, mapped_view value)
    -> std::pair<iterator, bool> {
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

// Splits no bucket, because a split could move items past the iterator.
template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::erase(const_iterator at) -> iterator {
  iterator next(*this, at.node_);
  ++next;
  position p;
  p.bucket = bucket_at(shape(), bucket_of(at.node_));
  p.nodes = p.bucket->load();
  for (p.found = p.nodes.first; p.found != at.node_; p.found = p.found->next) p.before = p.found;
  erase_at(p);
  return next;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::free_blocks() {
  const sizes s = shape();
  for_each_chain([](sizes, std::size_t, const chain& c) {
    for (node* n = c.first; n != nullptr;) Memory::destroy(std::exchange(n, n->next.load()));
  });
  for (std::size_t i = 0; i < s.segment_count(); ++i)
    Memory::destroy_array(segment_[i].load(), s.size_of(i));
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::clear() {
  free_blocks();
  sizes_ = 0;
}

// Buckets.

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::make_first_segment(std::size_t count) {
  segment_[0] = Memory::template make_array<bucket_head>(count);
  sizes_ = sizes::with_first_segment(count).word;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::grow() {
  const sizes s = shape();
  if (s.segment_count() == max_segments) return;
  segment_[s.segment_count()] = Memory::template make_array<bucket_head>(s.slots());
  sizes_ = s.grown().word;
}

template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::reserve(std::size_t count) {
  const std::size_t wanted = std::bit_ceil(std::max(count, min_buckets));
  if (bucket_count() == 0) return make_first_segment(wanted);
  while (bucket_count() < wanted && shape().segment_count() < max_segments) grow();
}

// Moves the items of `bucket` out of its parent. Splits the parent off its own parent first if
// needed.
template <class K, class V, class Memory>
auto basic_hash_map<K, V, Memory>::split_bucket(sizes s, std::size_t bucket) -> bucket_head* {
  const std::size_t parent = parent_of(bucket);
  bucket_head* const from = bucket_at(s, parent);
  chain whole = from->load();
  if (!is_split(s, parent, whole)) whole = split_bucket(s, parent)->load();
  const std::size_t mask = 2 * std::bit_floor(bucket) - 1;
  chain kept{nullptr, 0, whole.split}, moved{nullptr, 0, true};
  chain_check c;
  for (node *n = whole.first, *next = nullptr; n != nullptr; n = next) {
    c.step(n);
    next = n->next;
    chain& to = (keys::hash_stored(n->item.first) & mask) == bucket ? moved : kept;
    if (next != to.first) n->next = to.first;
    to.first = n;
    ++to.length;
  }
  if (kept.first != whole.first || moved.length != 0) from->store(kept);
  bucket_head* const to = bucket_at(s, bucket);
  to->store(moved);
  return to;
}

// Called when a chain has become long. Splits off the buckets that an earlier doubling left in it.
// If there are none, doubles the buckets if the sampled ones are full too.
template <class K, class V, class Memory>
void basic_hash_map<K, V, Memory>::split_or_grow(std::size_t bucket) {
  const sizes s = shape();
  for (std::size_t bit = std::max(s.first_segment_slots(), std::bit_ceil(bucket + 1));
       bit < s.slots(); bit *= 2) {
    if (bucket_at(s, bucket | bit)->load().split) continue;
    split_bucket(s, bucket | bit);
    return;
  }
  if (!is_overloaded(s, bucket)) return;
  try {
    grow();
  } catch (const failure& f) {
    // No room to double is not an error: the item is inserted, and a long chain is only slower.
    if (f.why().code != errc::full) throw;
  }
}

// Whether the sampled buckets hold two items each on average. One long chain alone comes from its
// hash values and adds little.
template <class K, class V, class Memory>
bool basic_hash_map<K, V, Memory>::is_overloaded(sizes s, std::size_t bucket) const {
  const std::size_t size = std::min(load_sample_buckets, s.slots());
  const std::size_t start = bucket / size * size;
  std::size_t items = 0;
  for (std::size_t i = start; i < start + size; ++i)
    items += std::min(bucket_at(s, i)->load().length, max_chain_length);
  return items >= 2 * size;
}

// Inspection.

template <class K, class V, class Memory>
template <class Visit>
void basic_hash_map<K, V, Memory>::visit_blocks(Visit&& visit) const {
  for (std::size_t i = 0; i < shape().segment_count(); ++i)
    visit(static_cast<const void*>(segment_[i].load()));
  for_each_chain([&](sizes, std::size_t, const chain& c) {
    chain_check walked;
    for (const node* n = c.first; n != nullptr; n = n->next) {
      walked.step(n);
      visit(detail::block_of<Memory>(n));
      keys::visit_blocks(n->item.first, visit);
      values::visit_blocks(n->item.second, visit);
    }
  });
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check() const {
  result<> outcome = check_segments({sizes_.load()});
  if (!outcome) return outcome;
  for_each_chain([&](sizes s, std::size_t bucket, const chain& c) {
    if (outcome) outcome = check_chain(s, bucket, c);
  });
  return outcome;
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check_segments(sizes s) const {
  if (s.empty()) return {};
  if (!s.valid(max_segments) || s.first_segment_slots() < min_buckets)
    return detail::corrupt_error("hash map: its number of buckets is none that it can have");
  for (std::size_t i = 0; i < s.segment_count(); ++i)
    detail::claim<Memory>(segment_[i].load(), s.size_of(i) * sizeof(bucket_head));
  return {};
}

template <class K, class V, class Memory>
result<> basic_hash_map<K, V, Memory>::check_chain(sizes s, std::size_t bucket,
                                                   const chain& c) const {
  if (!is_split(s, bucket, c) && c.length != 0)
    return detail::corrupt_error("hash map: nodes in a bucket not yet split off");
  std::vector<hashed_node> all;
  const node* visited = nullptr;
  for (const node* n = c.first; n != nullptr; n = n->next) {
    if (n == visited) return detail::corrupt_error("hash map: a chain ends in a circle");
    if (std::has_single_bit(all.size() + 1)) visited = n;
    detail::claim<Memory>(detail::block_of<Memory>(n), sizeof(node));
    const std::uint64_t hash = keys::hash_stored(n->item.first);
    all.emplace_back(hash, n);
    if (all.size() > c.length)
      return detail::corrupt_error("hash map: a chain is longer than its bucket says");
    if (find_chain(hash).first != c.first)
      return detail::corrupt_error("hash map: an item is not in its key's bucket");
  }
  if (all.size() != c.length)
    return detail::corrupt_error("hash map: a chain is shorter than its bucket says");
  return has_key_twice(all) ? detail::corrupt_error("hash map: a key occurs twice") : result<>();
}

// Sorts the nodes of a chain by hash: a made-up pool may have all its items in one chain.
template <class K, class V, class Memory>
bool basic_hash_map<K, V, Memory>::has_key_twice(std::vector<hashed_node>& all) {
  std::ranges::sort(all);
  for (auto n = all.begin(); n != all.end(); ++n)
    for (auto other = n + 1; other != all.end() && other->first == n->first; ++other)
      if (keys::equal(n->second->item.first, keys::get(other->second->item.first))) return true;
  return false;
}

}  // namespace stele
