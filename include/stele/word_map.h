// word_map: an unordered map from numbers to numbers, in buckets of one cache line.
//
//   struct stock { using pool_resident = void; stele::word_map<std::uint64_t, int> counts; };
//   auto pool = stele::pool<stock>::open("stock.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](stock& s) { s.counts.insert_or_assign(4711, 100); });
//   auto get = pool->read([](const stock& s) { return s.counts.find(4711).value_or(0); });
//   if (get) std::printf("%d\n", *get);
//
// Keys and values have at most 8 bytes. A bucket has four items in one line, so most operations
// touch one line and allocate nothing; an insert stores two words, an erase one. An item that finds
// its bucket full goes to a hash_map beside the buckets, and the bucket counts such items: while it
// counts none, nobody looks there. Growth adds half as many buckets or a third of them, at once,
// and moves no item. The first change that reaches a new bucket splits it off its parent (the
// bucket whose number lacks the top bit); until then lookups go to the parent. The recursive split
// is that of Shalev and Shavit ("Split-Ordered Lists", 2006); growth of an address space in steps
// is Litwin's ("Linear Hashing", 1980).
//
// Zeroed memory is an empty map. Call members in a transaction of the pool that holds the map,
// changing members in an update; they are rolled back with it. Items move, so there are no
// references and no iterators: lookups return copies, for_each visits all. An entry is valid until
// the next change of the map by other means. Members that may allocate throw failure(errc::full).
// Costs are expected costs.
#pragma once

#include <stele/hash_map.h>

#include <array>
#include <optional>
#include <span>

namespace stele {

namespace detail {

// A bijection on words whose low bits depend on all bits, and its inverse. A part of the format.
constexpr std::uint64_t mix_word(std::uint64_t x) noexcept {
  x = (x ^ x >> 32) * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9u;
  return x ^ x >> 32;
}
constexpr std::uint64_t inverse_of_odd(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // right in the low three bits; each step doubles their number
  for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
  return inverse;
}
constexpr std::uint64_t unmix_word(std::uint64_t x) noexcept {
  x = (x ^ x >> 32) * inverse_of_odd(0xBF58476D1CE4E5B9u);
  x = (x ^ x >> 32) * inverse_of_odd(0x9E3779B97F4A7C15u);
  return x ^ x >> 32;
}
static_assert(unmix_word(mix_word(0x0123456789ABCDEFu)) == 0x0123456789ABCDEFu);

// Segments of buckets: the first holds a power of two; then two of half as many, two of as many,
// two of twice as many, and so on. So the number of buckets is 2 or 3 times a power of two. One
// word describes all: its low byte is log2 of the first segment's buckets, above it their count.
struct half_step_sizes {
  std::uint64_t word = 0;

  static half_step_sizes with_first(std::size_t buckets) {
    return {static_cast<std::uint64_t>(std::countr_zero(buckets)) | 256};
  }
  half_step_sizes grown() const { return {word + 256}; }
  bool empty() const { return word == 0; }
  unsigned first_log2() const { return word & 255; }
  std::size_t first() const { return std::size_t{1} << first_log2(); }
  std::size_t segments() const { return word >> 8; }
  std::size_t buckets() const { return start_of(segments()); }
  // Of a segment: how many buckets are before it, and how many it has.
  std::size_t start_of(std::size_t segment) const {
    if (segment == 0) return 0;
    const std::size_t doubled = first() << (segment - 1) / 2;
    return segment % 2 == 1 ? doubled : doubled + doubled / 2;
  }
  std::size_t size_of(std::size_t segment) const {
    return start_of(segment + 1) - start_of(segment);
  }
  std::size_t segment_of(std::size_t bucket) const {
    const auto level = static_cast<unsigned>(std::bit_width(bucket >> first_log2()));
    if (level == 0) return 0;
    return 2 * level - 1 + (bucket >> (first_log2() + level - 2) & 1);
  }
  // Whether the other functions may be called, for a word from unchecked data.
  bool valid(std::size_t most_segments) const {
    return empty() || (first_log2() >= 4 && first_log2() < 40 && segments() >= 1 &&
                       segments() <= most_segments && first_log2() + segments() / 2 < 44);
  }
};

}  // namespace detail

// What a key or a value of a word_map may be: at most 8 bytes that are all its value.
template <class T>
concept word_value =
    storable_value<T> && sizeof(T) <= 8 && std::has_unique_object_representations_v<T>;

template <class K, class V, class Memory>
  requires word_value<K> && storable_value<V> && (sizeof(V) <= 8)
class basic_word_map {
 public:
  using pool_resident = void;
  using key_type = K;
  using mapped_type = V;
  class entry;

  basic_word_map() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty map
  ~basic_word_map() {
    run_destructor([&] { free_segments(); });
  }
  basic_word_map(const basic_word_map&) = delete;
  basic_word_map& operator=(const basic_word_map&) = delete;

  // O(buckets).
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t bucket_count() const { return sizes{sizes_.load()}.buckets(); }

  // O(1). The value of a key; none if the key is not there.
  [[nodiscard]] std::optional<V> find(K key) const;
  [[nodiscard]] bool contains(K key) const { return find(key).has_value(); }
  // The same for many keys: calls each(i, value) with a std::optional<V> for keys[i], in order. The
  // keys' buckets are prefetched, so that their misses overlap.
  template <class Each>
  void find_many(std::span<const K> keys, Each&& each) const;
  // Throws failure(errc::not_found) if the key is not there.
  [[nodiscard]] V at(K key) const {
    const auto found = find(key);
    return found ? *found : (detail::throw_key_not_found(), V{});
  }

  // The position of a key, searched once, to test, read, insert, assign or erase there. O(1).
  entry find_entry(K key);
  // {the value that is there now, inserted?}. O(1); when buckets are added, also zeroes O(buckets)
  // of memory.
  std::pair<V, bool> insert(K key, V value);
  std::pair<V, bool> emplace(K key, V value) { return insert(key, value); }
  std::pair<V, bool> try_emplace(K key, V value) { return insert(key, value); }
  std::pair<V, bool> insert_or_assign(K key, V value);
  // The number of items erased, 0 or 1. O(1).
  std::size_t erase(K key);
  // Erases every item and frees every block. O(buckets).
  void clear();
  // An empty map gets buckets for `count` items, 2.7 for each bucket at most. O(count).
  void reserve(std::size_t count);

  // Calls f(key, value) on each item, in no order. O(buckets).
  template <class F>
  void for_each(F&& f) const;
  // Calls visit(const void*) for every allocated block of the map.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if an item is not in its key's bucket, a key occurs twice, or a count is
  // wrong.
  [[nodiscard]] result<> check() const;

 private:
  static constexpr std::size_t items_in_bucket = 4, min_buckets = 16, max_segments = 64;
  // There are too few buckets when a fourth of them has an item elsewhere: 2.8 items a bucket.
  static constexpr std::size_t buckets_for_each_outside = 4;

  // The low four bits of an item's mixed key are those of its bucket's number, so a key word has
  // flags there. Zeroes: free, in a bucket that is not split off.
  static constexpr std::uint64_t flag_bits = 15, used_bit = 1, split_bit = 2, count_bits = 12;
  static constexpr unsigned count_shift = 2, max_count = 255;  // two bits in each of four key words

  struct slot {
    typename Memory::template field<std::uint64_t> key, value;
  };
  struct alignas(64) bucket {
    slot slots[items_in_bucket];
  };
  // A bucket's words, loaded at once.
  struct alignas(16) line {
    std::uint64_t words[2 * items_in_bucket];

    std::uint64_t key(std::size_t i) const { return words[2 * i]; }
    std::uint64_t value(std::size_t i) const { return words[2 * i + 1]; }
    bool split() const { return (words[0] & split_bit) != 0; }
    // Of items of this bucket that are outside; max_count: that many, or more.
    unsigned count() const {
      unsigned sum = 0;
      for (unsigned i = 0; i < items_in_bucket; ++i)
        sum |= static_cast<unsigned>((key(i) & count_bits) >> count_shift) << 2 * i;
      return sum;
    }
    // The slot of a key, or of any free slot; items_in_bucket: there is none.
    std::size_t slot_of(std::uint64_t mixed) const {
      const std::uint64_t wanted = (mixed & ~flag_bits) | used_bit;
      std::size_t i = 0;
      while (i < items_in_bucket && (key(i) & ~(flag_bits ^ used_bit)) != wanted) ++i;
      return i;
    }
    std::size_t free_slot() const {
      std::size_t i = 0;
      while (i < items_in_bucket && (key(i) & used_bit) != 0) ++i;
      return i;
    }
  };
  using sizes = detail::half_step_sizes;
  using outside_map = basic_hash_map<std::uint64_t, std::uint64_t, Memory>;

  template <class T>
  static std::uint64_t word_of(T value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  template <class T>
  static T of_word(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  static std::uint64_t mixed_key(const line& l, std::size_t i, std::size_t number) {
    return (l.key(i) & ~flag_bits) | (number & flag_bits);
  }
  static std::size_t number_of(sizes s, std::uint64_t mixed) {
    const std::size_t all = s.buckets(), mask = std::bit_ceil(all) - 1, number = mixed & mask;
    return number < all ? number : number & mask >> 1;
  }
  static std::size_t parent_of(std::size_t number) { return number ^ std::bit_floor(number); }
  [[gnu::always_inline]] bucket* bucket_at(sizes s, std::size_t number) const {
    const std::size_t segment = s.segment_of(number);
    return segment_[segment].load() + (number - s.start_of(segment));
  }
  static line load(const bucket* at) {
    line l;
    Memory::load_bytes(&l, at, sizeof l);
    return l;
  }
  static bool is_split(sizes s, std::size_t number, const line& l) {
    return number < s.first() || l.split();
  }

  // The bucket that has an item's key now: its number and words. Buckets not yet split off leave
  // theirs to their parents.
  std::pair<std::size_t, line> bucket_of(sizes s, std::uint64_t mixed) const {
    std::size_t number = number_of(s, mixed);
    for (;; number = parent_of(number))
      if (const line l = load(bucket_at(s, number)); is_split(s, number, l)) return {number, l};
  }
  // The value of a key that its bucket does not have but may count.
  std::optional<std::uint64_t> find_outside(const line& l, std::uint64_t key) const {
    if (l.count() == 0) [[likely]]
      return std::nullopt;
    const auto found = outside_.find(key);
    return found == outside_.end() ? std::nullopt : std::optional(found->second.load());
  }
  std::optional<V> find_in(sizes s, std::uint64_t mixed, K key) const;
  bucket* split(sizes s, std::size_t number, line& now);
  static void store_count(bucket* at, const line& l, unsigned count);
  void change_count(bucket* at, const line& l, int by);
  void grow();
  void make_first_segment(std::size_t buckets);
  template <class F>
  void for_each_bucket(F&& f) const;
  void free_segments();
  [[nodiscard]] result<> check_bucket(sizes s, std::size_t number, const line& l) const;

  typename Memory::template field<std::uint64_t> sizes_;
  typename Memory::template field<std::uint64_t> items_outside_;
  typename Memory::template field<bucket*> segment_[max_segments];
  outside_map outside_;  // by key
};

template <class K, class V>
using word_map = basic_word_map<K, V, pool_memory>;

}  // namespace stele

#include <stele/detail/word_map_inl.h>
