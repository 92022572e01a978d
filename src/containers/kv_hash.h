// The hash index of a key-value store: from a key to its record in two memory accesses, the
// bucket's line and the record's.
//
// A bucket is one line of seven slots. A slot has 20 bits of the key's hash as a tag, so a lookup
// rarely reads the record of another key. A full bucket gets overflow buckets, as a chain. The
// number of buckets grows with the number of items, after Litwin ("Linear hashing", 1980): an
// insert that lengthens a chain shows that there are too few buckets, and some of these inserts,
// chosen by hash, add a step of buckets. So the inserts share no counter. New buckets move no item:
// the first change that reaches a new bucket splits it off its parent (the bucket whose number
// lacks the top bit). Until then lookups go to the parent, as in hash_map.
//
// Invariants: a bucket that is not split is empty; every record is in the chain of the split bucket
// for its hash. Zeroed memory is an empty index. The index does not own the records.
#pragma once

#include <base/assert.h>
#include <containers/kv_record.h>

#include <array>
#include <vector>

namespace stele::detail {

template <class Memory>
class kv_hash {
  using word = typename Memory::template field<std::uint64_t>;
  using record = kv_record<Memory>;
  static constexpr unsigned slots = format::kv_bucket_slots;
  struct bucket {
    word slot[slots];
    word link;
  };
  static_assert(sizeof(bucket) == format::kv_bucket_bytes);
  using line = std::array<std::uint64_t, slots + 1>;

 public:
  struct lookup_result {
    char* block = nullptr;  // null: the key is not there
    format::kv_record_header lengths;
    bucket* at = nullptr;
    unsigned slot = 0;
  };
  static std::uint64_t hash_of(std::string_view key) { return hash_bytes(key.data(), key.size()); }

  // The first bucket of the chain for a hash: its number, then also its words.
  struct chain_start {
    std::size_t number = 0;
    bucket* at = nullptr;  // null: the index is empty
    line words;
  };

  [[gnu::always_inline]] lookup_result find(std::string_view key, std::uint64_t hash) const {
    chain_start c;
    start(c, hash);
    load(c);
    return find_in_chain(c, key, hash);
  }
  // The steps of find(), for lookups that overlap: start, prefetch_bucket, load, prefetch_records,
  // find_in_chain. Changes of the store end a lookup.
  [[gnu::always_inline]] void start(chain_start& c, std::uint64_t hash) const {
    const std::size_t count = count_.load();
    c.number = count == 0 ? 0 : bucket_index(count, hash);
    c.at = count == 0 ? nullptr : bucket_at(c.number);
  }
  static void prefetch_bucket(const chain_start& c) { Memory::prefetch(c.at); }
  [[gnu::always_inline]] void load(chain_start& c) const {
    if (c.at == nullptr) return;
    while (c.words = load(c.at), !is_split(c.number, c.words)) {
      c.number = parent_of(c.number);
      c.at = bucket_at(c.number);
    }
  }
  // Prefetches the records that have the tag of the hash, or else the next bucket.
  void prefetch_records(const chain_start& c, std::uint64_t hash) const {
    if (c.at == nullptr) return;
    const unsigned matching = matches(c.words, hash);
    for (unsigned left = matching; left != 0; left &= left - 1)
      record(resolve(c.words[static_cast<unsigned>(std::countr_zero(left))])).prefetch();
    if (matching == 0) Memory::prefetch(next_of(c.words));
  }
  [[gnu::always_inline]] lookup_result find_in_chain(chain_start& c, std::string_view key,
                                                     std::uint64_t hash) const {
    if (c.at == nullptr) return {};
    bucket* b = c.at;
    line& l = c.words;
    for (cycle_detector guard;; l = load(b)) {
      for (unsigned left = matches(l, hash); left != 0; left &= left - 1) {
        const auto s = static_cast<unsigned>(std::countr_zero(left));
        if (l[s] == 0) continue;
        const record r(resolve(l[s]));
        r.prefetch_rest();
        format::kv_record_header lengths;
        if (r.has_key(key, lengths)) return {r.block(), lengths, b, s};
      }
      b = next_of(l);
      if (b == nullptr) return {};
      guard.step(b);
    }
  }
  // Inserts a key that find() did not find in this transaction.
  void insert(std::uint64_t hash, char* block) {
    STELE_ASSERT(block != nullptr);
    if (count_.load() == 0) make_first();
    bucket* b = find_split_bucket(count_.load(), hash);
    for (cycle_detector guard;; guard.step(b)) {
      const line l = load(b);
      for (unsigned s = 0; s < slots; ++s) {
        if (l[s] != 0) continue;
        b->slot[s] = slot_word(hash, block);
        return;
      }
      if (!next_of(l)) break;
      b = next_of(l);
    }
    insert_overflow(b, hash, block);
  }
  void replace(const lookup_result& f, std::uint64_t hash, char* block) {
    STELE_ASSERT(f.block != nullptr && f.block != block && f.at != nullptr && f.slot < slots);
    f.at->slot[f.slot] = slot_word(hash, block);
  }
  void erase(const lookup_result& f, std::uint64_t hash) {
    STELE_ASSERT(f.block != nullptr && f.at != nullptr && f.slot < slots);
    f.at->slot[f.slot] = 0;
    const std::size_t count = count_.load();
    bucket* const target = bucket_at(split_index(count, hash));
    if (next_of(load(target)) == nullptr) return;
    std::vector<std::uint64_t> words;
    collect_slots(target, words);
    if (words.size() % slots == 0) store_chain(target, words);  // the chain needs one bucket fewer
  }

  std::size_t size() const {
    std::size_t sum = 0;
    for_each_slot([&](std::size_t, std::uint64_t) { ++sum; });
    return sum;
  }
  // Number of buckets, and of bytes in segments and overflow buckets.
  struct space {
    std::uint64_t buckets = 0, bytes = 0;
  };
  space used_space() const {
    const std::size_t count = count_.load();
    space used{count, 0};
    for (std::size_t s = 0; s < format::kv_segments && start_of(s) < count; ++s)
      used.bytes += std::max(first_buckets, start_of(s)) * sizeof(bucket);
    for (std::size_t i = 0; i < count; ++i) {
      cycle_detector guard;
      for (bucket* b = next_of(load(bucket_at(i))); b != nullptr;
           guard.step(b), b = next_of(load(b)))
        ++used.buckets, used.bytes += sizeof(bucket);
    }
    return used;
  }
  template <class Visit>
  void visit_blocks(Visit& visit) const {
    const std::size_t count = count_.load();
    for (std::size_t s = 0; s < format::kv_segments && start_of(s) < count; ++s)
      visit(static_cast<const void*>(resolve(segment_[s].load())));
    for (std::size_t i = 0; i < count; ++i) {
      cycle_detector guard;
      for (bucket* b = next_of(load(bucket_at(i))); b != nullptr;
           guard.step(b), b = next_of(load(b)))
        visit(static_cast<const void*>(b));
    }
  }
  // Errors: corrupt. The store checks that both indexes have the same records.
  [[nodiscard]] result<> check() const {
    const std::size_t count = count_.load();
    result<> outcome = check_buckets(count);
    for (std::size_t i = 0; i < count && outcome; ++i) {
      const line l = load(bucket_at(i));
      if (!is_split(i, l) && std::ranges::any_of(l, [](std::uint64_t w) { return w != 0; }))
        outcome = corrupt_error(
            "key-value store: a hash bucket that is not split off yet holds something");
    }
    if (!outcome) return outcome;
    for_each_slot([&](std::size_t i, std::uint64_t w) {
      const std::uint64_t hash = record(resolve(w)).hash();
      if (split_index(count, hash) != i)
        outcome = corrupt_error("key-value store: a record is not in its key's hash bucket");
      if (w >> format::kv_reference_bits != tag_of(hash))
        outcome = corrupt_error("key-value store: a tag is not of its key's hash");
    });
    return outcome;
  }

 private:
  static constexpr std::size_t first_buckets = format::kv_first_buckets;
  static constexpr std::size_t min_step = 8, max_step = 256;  // buckets added at a time
  // Buckets added for each bucket that overflows, on average.
  static constexpr std::size_t buckets_per_overflow = 2;

  // Checks the number of buckets and claims each segment and each overflow bucket.
  [[nodiscard]] result<> check_buckets(std::size_t count) const {
    if (count == 0) return {};
    if (count < first_buckets || count > first_buckets << (format::kv_segments - 1) ||
        count % step_at(count) != 0)
      return corrupt_error("key-value store: its number of hash buckets is none that it can have");
    for (std::size_t s = 0; s < format::kv_segments && start_of(s) < count; ++s)
      claim<Memory>(resolve(segment_[s].load()),
                    std::max(first_buckets, start_of(s)) * sizeof(bucket));
    for (std::size_t i = 0; i < count; ++i)
      for (const bucket* b = next_of(load(bucket_at(i))); b != nullptr; b = next_of(load(b)))
        claim<Memory>(b, sizeof(bucket));
    return {};
  }
  static std::size_t step_at(std::size_t count) {
    return std::clamp(std::bit_floor(count) / 8, min_step, max_step);
  }

  static std::uint64_t tag_of(std::uint64_t hash) { return hash >> format::kv_reference_bits; }
  std::uint64_t slot_word(std::uint64_t hash, const char* block) const {
    const std::uint64_t w =
        tag_of(hash) << format::kv_reference_bits | format::kv_encode_reference(this, block);
    // kv.md: a slot leads to the record, and has the top bits of its key's hash.
    STELE_ASSERT(resolve(w) == block && w >> format::kv_reference_bits == tag_of(hash));
    return w;
  }
  char* resolve(std::uint64_t w) const {
    return (w & format::kv_reference_mask) == 0 ? nullptr : format::kv_decode_reference(this, w);
  }
  bucket* next_of(const line& l) const { return reinterpret_cast<bucket*>(resolve(l[slots])); }
  static line load(const bucket* b) {
    line l;
    verify_in_heap<Memory>(b, sizeof(bucket));
    Memory::load_bytes(l.data(), b, sizeof l);
    return l;
  }

  // Segment 0 has the first buckets; each later segment has as many as all before it.
  static std::size_t start_of(std::size_t segment) {
    return segment == 0 ? 0 : first_buckets << (segment - 1);
  }
  bucket* bucket_at(std::size_t i) const {
    const auto segment = static_cast<std::size_t>(std::bit_width(i / first_buckets));
    if (segment >= format::kv_segments) [[unlikely]]
      throw_corrupt_store("more hash buckets than it can have");
    STELE_ASSERT(i >= start_of(segment));
    return reinterpret_cast<bucket*>(resolve(segment_[segment].load())) + (i - start_of(segment));
  }
  static std::size_t parent_of(std::size_t i) { return i ^ std::bit_floor(i); }
  static bool is_split(std::size_t i, const line& l) {
    return i < first_buckets || (l[slots] & format::kv_bucket_split_bit) != 0;
  }
  static std::size_t bucket_index(std::size_t count, std::uint64_t hash) {
    // `| 1` keeps the shift defined for every count.
    const std::size_t i = hash & (~std::size_t{0} >> std::countl_zero((count - 1) | 1));
    STELE_ASSERT(i < count || parent_of(i) < count);  // kv.md: the bucket is in use
    return i < count ? i : parent_of(i);
  }
  std::size_t split_index(std::size_t count, std::uint64_t hash) const {
    std::size_t i = bucket_index(count, hash);
    while (!is_split(i, load(bucket_at(i)))) i = parent_of(i);
    return i;
  }

  // The slots with the tag of a hash, one bit each; for the tag 0 also free slots. Without
  // branches, so that the processor need not predict loaded values.
  static unsigned matches(const line& l, std::uint64_t hash) {
    const std::uint64_t wanted = hash & ~format::kv_reference_mask;
    unsigned matching = 0;
    for (unsigned s = 0; s < slots; ++s)
      matching |= static_cast<unsigned>((l[s] ^ wanted) <= format::kv_reference_mask) << s;
    return matching;
  }
  template <class F>
  void for_each_slot(F&& f) const {
    const std::size_t count = count_.load();
    for (std::size_t i = 0; i < count; ++i) {
      cycle_detector guard;
      for (bucket* b = bucket_at(i); b != nullptr; guard.step(b)) {
        const line l = load(b);
        for (unsigned s = 0; s < slots; ++s)
          if (l[s] != 0) f(i, l[s]);
        b = next_of(l);
      }
    }
  }

  void make_first() {
    void* const block = Memory::allocate(first_buckets * sizeof(bucket), line_size);
    Memory::fill_zero(block, first_buckets * sizeof(bucket));
    segment_[0] = format::kv_encode_reference(this, block);
    count_ = first_buckets;
  }

  // The bucket for a hash, split off its parents.
  bucket* find_split_bucket(std::size_t count, std::uint64_t hash) {
    const std::size_t i = bucket_index(count, hash);
    bucket* const b = bucket_at(i);
    if (!is_split(i, load(b))) split(i);
    return b;
  }
  // Moves the records of bucket i out of its parent. Splits the parent off its own parent first if
  // needed.
  void split(std::size_t i) {
    const std::size_t parent = parent_of(i);
    STELE_ASSERT(i >= first_buckets && parent < i);  // kv.md: buckets 0 to 7 are always split
    bucket* const from = bucket_at(parent);
    if (!is_split(parent, load(from))) split(parent);
    std::vector<std::uint64_t> all, kept, moved;
    collect_slots(from, all);
    for (const std::uint64_t w : all) record(resolve(w)).prefetch();
    const std::size_t mask = 2 * std::bit_floor(i) - 1;
    for (const std::uint64_t w : all)
      ((record(resolve(w)).hash() & mask) == i ? moved : kept).push_back(w);
    if (!moved.empty()) store_chain(from, kept);
    bucket* const to = bucket_at(i);
    to->link = format::kv_bucket_split_bit;
    store_chain(to, moved);
  }
  void collect_slots(bucket* b, std::vector<std::uint64_t>& words) const {
    for (cycle_detector guard; b != nullptr; guard.step(b)) {
      const line l = load(b);
      for (unsigned s = 0; s < slots; ++s)
        if (l[s] != 0) words.push_back(l[s]);
      b = next_of(l);
    }
  }
  // Makes `words` the content of the chain; allocates and frees overflow buckets as needed.
  void store_chain(bucket* b, const std::vector<std::uint64_t>& words) {
    for (std::size_t done = 0;;) {
      const line l = load(b);
      for (unsigned s = 0; s < slots; ++s) {
        const std::uint64_t wanted = done < words.size() ? words[done++] : 0;
        if (l[s] != wanted) b->slot[s] = wanted;
      }
      bucket* next = next_of(l);
      STELE_ASSERT(done <= words.size());
      if (done == words.size()) {
        if (next == nullptr) return;
        b->link = l[slots] & ~format::kv_reference_mask;
        return free_chain(next);
      }
      if (next == nullptr) next = append(b, l);
      b = next;
    }
  }
  bucket* append(bucket* b, const line& l) {
    STELE_ASSERT(next_of(l) == nullptr);  // b is the last of its chain
    void* const block = Memory::allocate(sizeof(bucket), line_size);
    Memory::fill_zero(block, sizeof(bucket));
    b->link = (l[slots] & ~format::kv_reference_mask) | format::kv_encode_reference(this, block);
    return static_cast<bucket*>(block);
  }
  void free_chain(bucket* b) {
    while (b != nullptr) {
      bucket* const next = next_of(load(b));
      Memory::deallocate(b);
      b = next;
    }
  }

  // Inserts into a chain without a free slot; b is its last bucket. Splits off a bucket whose
  // records are still in this chain; if there is none, appends an overflow bucket and sometimes
  // adds a step of buckets.
  void insert_overflow(bucket* b, std::uint64_t hash, char* block) {
    const std::size_t count = count_.load();
    if (count < first_buckets || count > first_buckets << (format::kv_segments - 1))
      throw_corrupt_store("its number of hash buckets is none that it can have");
    const std::size_t target = bucket_index(count, hash);
    for (std::size_t bit = std::max(first_buckets, std::bit_ceil(target + 1));
         (target | bit) < count; bit *= 2) {
      if (is_split(target | bit, load(bucket_at(target | bit)))) continue;
      split(target | bit);
      return insert(hash, block);
    }
    append(b, load(b))->slot[0] = slot_word(hash, block);
    const std::size_t step = step_at(count);
    if (tag_of(hash) % (step / buckets_per_overflow) == 0) grow(count, step);
  }
  void grow(std::size_t count, std::size_t step) {
    const auto segment = static_cast<std::size_t>(std::bit_width(count / first_buckets));
    if (segment >= format::kv_segments) return;
    STELE_ASSERT(step >= min_step && step <= max_step && start_of(segment) <= count);
    try {
      if (start_of(segment) == count) {
        void* const block = Memory::allocate(count * sizeof(bucket), line_size);
        segment_[segment] = format::kv_encode_reference(this, block);
      }
    } catch (const failure& f) {
      if (f.why().code != errc::full) throw;
      return;  // no room: the item is inserted, and a long chain is only slower
    }
    count_ = count + step;
    verify_in_heap<Memory>(bucket_at(count), step * sizeof(bucket));
    Memory::fill_zero(bucket_at(count), step * sizeof(bucket));
  }

  word count_;                         // buckets in use; a segment may be larger
  word segment_[format::kv_segments];  // references
};

}  // namespace stele::detail
