// The members of word_map; word_map.h has their contracts.
#pragma once

namespace stele {

#define STELE_WORD_MAP                      \
  template <class K, class V, class Memory> \
    requires word_value<K> && storable_value<V> && (sizeof(V) <= 8)

STELE_WORD_MAP
class basic_word_map<K, V, Memory>::entry {
 public:
  [[nodiscard]] bool exists() const { return exists_; }
  [[nodiscard]] V value() const { return of_word<V>(value_); }  // requires exists()
  // Inserts the key with this value. Requires !exists().
  void insert(V value);
  // Requires exists().
  void assign(V value);
  // Erases the item. Requires exists(). The entry is invalid afterwards.
  void erase();

 private:
  friend basic_word_map;
  entry(basic_word_map& map, K key)
      : map_(map), key_(word_of(key)), mixed_(detail::mix_word(key_)) {
    const sizes s{map.sizes_.load()};
    if (s.empty()) return;
    find_bucket(s);
    slot_ = line_.slot_of(mixed_);
    exists_ = slot_ != items_in_bucket;
    if (exists_) {
      value_ = line_.value(slot_);
    } else if (const auto outside = map.find_outside(line_, key_)) {
      exists_ = true;
      value_ = *outside;
    }
  }
  void find_bucket(sizes s) {
    const std::size_t number = number_of(s, mixed_);
    at_ = map_.bucket_at(s, number);
    line_ = load(at_);
    if (!is_split(s, number, line_)) [[unlikely]]
      at_ = map_.split(s, number, line_);
  }
  bool is_outside() const { return slot_ == items_in_bucket; }

  basic_word_map& map_;
  const std::uint64_t key_, mixed_;
  bucket* at_ = nullptr;
  line line_;
  std::size_t slot_ = items_in_bucket;
  bool exists_ = false;
  std::uint64_t value_ = 0;
};

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::entry::insert(V value) {
  if (at_ == nullptr) {
    map_.make_first_segment(min_buckets);
    find_bucket({map_.sizes_.load()});
  }
  value_ = word_of(value);
  exists_ = true;
  slot_ = line_.free_slot();
  if (is_outside()) [[unlikely]] {
    map_.outside_.insert(key_, value_);
    return map_.change_count(at_, line_, 1);
  }
  slot& to = at_->slots[slot_];
  to.key = (mixed_ & ~flag_bits) | used_bit | (line_.key(slot_) & flag_bits);
  to.value = value_;
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::entry::assign(V value) {
  value_ = word_of(value);
  if (is_outside())
    map_.outside_.insert_or_assign(key_, value_);
  else
    at_->slots[slot_].value = value_;
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::entry::erase() {
  exists_ = false;
  if (is_outside()) [[unlikely]] {
    map_.outside_.erase(key_);
    return map_.change_count(at_, line_, -1);
  }
  at_->slots[slot_].key = line_.key(slot_) & (flag_bits ^ used_bit);
}

// Lookup.

STELE_WORD_MAP
std::optional<V> basic_word_map<K, V, Memory>::find_in(sizes s, std::uint64_t mixed, K key) const {
  const line l = bucket_of(s, mixed).second;
  if (const std::size_t i = l.slot_of(mixed); i != items_in_bucket) return of_word<V>(l.value(i));
  const auto outside = find_outside(l, word_of(key));
  return outside ? std::optional(of_word<V>(*outside)) : std::nullopt;
}

STELE_WORD_MAP
std::optional<V> basic_word_map<K, V, Memory>::find(K key) const {
  const sizes s{sizes_.load()};
  if (s.empty()) return std::nullopt;
  return find_in(s, detail::mix_word(word_of(key)), key);
}

STELE_WORD_MAP
template <class Each>
void basic_word_map<K, V, Memory>::find_many(std::span<const K> keys, Each&& each) const {
  const sizes s{sizes_.load()};
  detail::pipeline_items<std::uint64_t, 2> mixed;
  detail::run_pipeline(
      keys.size(),
      [&](std::size_t i) {
        mixed[i] = detail::mix_word(word_of(keys[i]));
        if (!s.empty()) Memory::prefetch(bucket_at(s, number_of(s, mixed[i])));
      },
      [&](std::size_t i) {
        each(i, s.empty() ? std::optional<V>() : find_in(s, mixed[i], keys[i]));
      });
}

STELE_WORD_MAP
template <class F>
void basic_word_map<K, V, Memory>::for_each_bucket(F&& f) const {
  const sizes s{sizes_.load()};
  for (std::size_t segment = 0; segment < s.segments(); ++segment) {
    const bucket* const first = segment_[segment].load();
    for (std::size_t i = 0; i < s.size_of(segment); ++i)
      f(s.start_of(segment) + i, load(first + i));
  }
}

STELE_WORD_MAP
template <class F>
void basic_word_map<K, V, Memory>::for_each(F&& f) const {
  for_each_bucket([&](std::size_t number, const line& l) {
    for (std::size_t i = 0; i < items_in_bucket; ++i)
      if ((l.key(i) & used_bit) != 0)
        f(of_word<K>(detail::unmix_word(mixed_key(l, i, number))), of_word<V>(l.value(i)));
  });
  outside_.for_each([&](const auto& key, const auto& value) {
    f(of_word<K>(key.load()), of_word<V>(value.load()));
  });
}

STELE_WORD_MAP
std::size_t basic_word_map<K, V, Memory>::size() const {
  std::size_t sum = items_outside_.load();
  for_each_bucket([&](std::size_t, const line& l) {
    for (std::size_t i = 0; i < items_in_bucket; ++i) sum += l.key(i) & used_bit;
  });
  return sum;
}

// Changes.

STELE_WORD_MAP
auto basic_word_map<K, V, Memory>::find_entry(K key) -> entry {
  return entry(*this, key);
}

STELE_WORD_MAP
std::pair<V, bool> basic_word_map<K, V, Memory>::insert(K key, V value) {
  entry e(*this, key);
  const bool fresh = !e.exists();
  if (fresh) e.insert(value);
  return {e.value(), fresh};
}

STELE_WORD_MAP
std::pair<V, bool> basic_word_map<K, V, Memory>::insert_or_assign(K key, V value) {
  entry e(*this, key);
  const bool fresh = !e.exists();
  fresh ? e.insert(value) : e.assign(value);
  return {value, fresh};
}

STELE_WORD_MAP
std::size_t basic_word_map<K, V, Memory>::erase(K key) {
  entry e(*this, key);
  if (!e.exists()) return 0;
  e.erase();
  return 1;
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::store_count(bucket* at, const line& l, unsigned count) {
  for (unsigned i = 0; i < items_in_bucket; ++i) {
    const std::uint64_t bits = std::uint64_t{count >> 2 * i & 3} << count_shift;
    if ((l.key(i) & count_bits) != bits) at->slots[i].key = (l.key(i) & ~count_bits) | bits;
  }
}

// An item of the bucket went outside, or is there no more. A count that has reached max_count
// stays: how many there are is not known any more.
STELE_WORD_MAP
void basic_word_map<K, V, Memory>::change_count(bucket* at, const line& l, int by) {
  const std::uint64_t outside = items_outside_.load() + static_cast<std::uint64_t>(by);
  items_outside_ = outside;
  if (const unsigned count = l.count(); count != max_count)
    store_count(at, l, count + static_cast<unsigned>(by));
  if (by > 0 && outside * buckets_for_each_outside > bucket_count()) grow();
}

// Moves the items of bucket `number` out of its parent, whose count becomes that of both: an upper
// bound. Splits the parent off its own parent first if needed. `now`: the bucket's words
// afterwards.
STELE_WORD_MAP
auto basic_word_map<K, V, Memory>::split(sizes s, std::size_t number, line& now) -> bucket* {
  const std::size_t parent = parent_of(number), mask = 2 * std::bit_floor(number) - 1;
  bucket *from = bucket_at(s, parent), *const to = bucket_at(s, number);
  line whole = load(from);
  if (!is_split(s, parent, whole)) from = split(s, parent, whole);
  std::size_t moved = 0;
  now = {};
  for (std::size_t i = 0; i < items_in_bucket; ++i) {
    if ((whole.key(i) & used_bit) == 0 || (mixed_key(whole, i, parent) & mask) != number) continue;
    now.words[2 * moved] = whole.key(i) & ~(flag_bits ^ used_bit);
    now.words[2 * moved++ + 1] = whole.value(i);
    from->slots[i].key = whole.key(i) & (flag_bits ^ used_bit);
  }
  now.words[0] |= split_bit;
  for (std::size_t i = 0; i < items_in_bucket; ++i) {
    now.words[2 * i] |= whole.key(i) & count_bits;
    if (now.key(i) != 0) to->slots[i].key = now.key(i);
    if (i < moved) to->slots[i].value = now.value(i);
  }
  return to;
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::make_first_segment(std::size_t buckets) {
  segment_[0] = Memory::template make_array<bucket>(buckets);
  sizes_ = sizes::with_first(buckets).word;
}

// No room to grow is not an error: the item is inserted, and finding it is only slower.
STELE_WORD_MAP
void basic_word_map<K, V, Memory>::grow() {
  const sizes s{sizes_.load()};
  if (!s.grown().valid(max_segments)) return;
  try {
    segment_[s.segments()] = Memory::template make_array<bucket>(s.size_of(s.segments()));
    sizes_ = s.grown().word;
  } catch (const failure& f) {
    if (f.why().code != errc::full) throw;
  }
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::reserve(std::size_t count) {
  if (sizes_.load() != 0) return;
  const std::size_t wanted = std::max(min_buckets, count / 8 * 3 + count % 8);
  make_first_segment(std::bit_floor(wanted));
  for (std::size_t before = 0; before != bucket_count() && bucket_count() < wanted;) {
    before = bucket_count();
    grow();
  }
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::free_segments() {
  const sizes s{sizes_.load()};
  for (std::size_t i = 0; i < s.segments(); ++i)
    Memory::destroy_array(segment_[i].load(), s.size_of(i));
}

STELE_WORD_MAP
void basic_word_map<K, V, Memory>::clear() {
  free_segments();
  outside_.clear();
  sizes_ = 0;
  items_outside_ = 0;
}

// Inspection.

STELE_WORD_MAP
template <class Visit>
void basic_word_map<K, V, Memory>::visit_blocks(Visit&& visit) const {
  for (std::size_t i = 0; i < sizes{sizes_.load()}.segments(); ++i)
    visit(static_cast<const void*>(segment_[i].load()));
  outside_.visit_blocks(visit);
}

STELE_WORD_MAP
result<> basic_word_map<K, V, Memory>::check() const {
  const sizes s{sizes_.load()};
  if (!s.valid(max_segments))
    return detail::corrupt_error("word map: its number of buckets is none that it can have");
  for (std::size_t i = 0; i < s.segments(); ++i)
    detail::claim<Memory>(segment_[i].load(), s.size_of(i) * sizeof(bucket));
  result<> outcome = outside_.check();
  if (outcome && items_outside_.load() != outside_.size())
    outcome = detail::corrupt_error("word map: its count of items outside of buckets is wrong");
  for_each_bucket([&](std::size_t number, const line& l) {
    if (outcome) outcome = check_bucket(s, number, l);
  });
  outside_.for_each([&](const auto& key, const auto&) {
    if (!outcome) return;
    const std::uint64_t mixed = detail::mix_word(key.load());
    const line l = bucket_of(s, mixed).second;
    if (l.count() == 0)
      outcome = detail::corrupt_error("word map: a bucket does not count its item outside");
    else if (l.slot_of(mixed) != items_in_bucket)
      outcome = detail::corrupt_error("word map: a key occurs twice");
  });
  return outcome;
}

STELE_WORD_MAP
result<> basic_word_map<K, V, Memory>::check_bucket(sizes s, std::size_t number,
                                                    const line& l) const {
  for (std::size_t i = 0; i < items_in_bucket; ++i) {
    if ((l.key(i) & used_bit) == 0) continue;
    if (!is_split(s, number, l))
      return detail::corrupt_error("word map: items in a bucket not yet split off");
    const std::uint64_t mixed = mixed_key(l, i, number);
    if (bucket_of(s, mixed).first != number)
      return detail::corrupt_error("word map: an item is not in its key's bucket");
    if (l.slot_of(mixed) != i) return detail::corrupt_error("word map: a key occurs twice");
  }
  return {};
}

#undef STELE_WORD_MAP

}  // namespace stele
