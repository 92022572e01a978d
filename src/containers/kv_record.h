// One item of a key-value store: lengths, key, value and expiry time together in one block.
//
// Call all functions in a transaction, changing functions in an update. A Memory is a policy of
// stele/memory.h.
#pragma once

#include <base/assert.h>
#include <format/kv_layout.h>
#include <stele/detail/bounded_memory.h>
#include <stele/detail/guarded_memory.h>
#include <stele/element.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace stele::detail {

// Checks a range that a word in the data leads to. No effect with a memory that is not a pool.
template <class Memory>
[[gnu::always_inline]] inline void verify_in_heap(const void* from, std::size_t bytes) {
  if constexpr (requires { Memory::verify_in_heap(from, bytes); })
    Memory::verify_in_heap(from, bytes);
}
[[noreturn]] [[gnu::noinline]] inline void throw_corrupt_store(const char* what) {
  throw failure({errc::corrupt, std::string("key-value store: ") + what +
                                    "; check the pool, or restore it from a copy"});
}

// Ends a walk that visits more blocks than the heap can have: links lead back, or two to one block.
template <class Memory>
class visit_limit {
 public:
  explicit visit_limit(std::size_t block_bytes) {
    if constexpr (requires { Memory::pool_bytes(); }) left_ = Memory::pool_bytes() / block_bytes;
  }
  void step() {
    if (left_-- == 0) throw_circle();
  }

 private:
  std::size_t left_ = ~std::size_t{0};
};

template <class Memory>
class kv_record {
  using word = typename Memory::template field<std::uint64_t>;

 public:
  using head = format::kv_record_header;

  explicit kv_record(char* block) : block_(block) {}
  char* block() const { return block_; }

  // expires: milliseconds since 1970; 0: never.
  static kv_record create(std::string_view key, std::string_view value, std::uint64_t expires) {
    // The caller has checked the sizes.
    STELE_ASSERT(!key.empty() && key.size() <= format::kv_max_key_size &&
                 value.size() <= format::kv_max_value_size);
    const head h{static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size()),
                 expires != 0};
    const kv_record r(static_cast<char*>(Memory::allocate(h.allocated_size(), 8)));
    r.fill(h, key, value, expires);
    return r;
  }
  void destroy() const { Memory::deallocate(block_); }

  head lengths() const {
    verify_in_heap<Memory>(block_, 8);
    const head h = head::unpack(word_at(0).load());
    validate_lengths(h);
    return h;
  }
  // Called before key or value is loaded; includes the padding to the next 16 bytes.
  [[gnu::always_inline]] void validate_lengths(const head& h) const {
    if (std::uint32_t{h.key_bytes} - 1 >= format::kv_max_key_size ||
        h.value_bytes > format::kv_max_value_size) [[unlikely]]
      throw_corrupt_store("a record of impossible lengths");
    verify_in_heap<Memory>(block_, (h.bytes() + 15) / 16 * 16);
  }

  // Loads `bytes` bytes of the key from `skip` on.
  void load_key(std::size_t skip, char* to, std::size_t bytes) const {
    verify_in_heap<Memory>(block_, 8 + skip + bytes);
    Memory::load_bytes(to, block_ + 8 + skip, bytes);
  }
  void load_key(const head& h, std::string& into) const {
    into.resize(h.key_bytes);
    load_key(0, into.data(), h.key_bytes);
  }
  void load_value(const head& h, std::string& into) const {
    // Loads up to the next multiple of 16 bytes, which the block has: the load of such a range need
    // not handle single words.
    into.resize((h.value_offset() + h.value_bytes + 15) / 16 * 16 - h.value_offset());
    if (!into.empty()) Memory::load_bytes(into.data(), block_ + h.value_offset(), into.size());
    into.resize(h.value_bytes);
  }

  // Requires h.expires.
  std::uint64_t expiry(const head& h) const {
    STELE_ASSERT(h.expires);
    return word_at(h.expiry_offset()).load();
  }

  // Whether the record has this key. If so, `h` has its lengths.
  bool has_key(std::string_view key, head& h) const {
    if (key.size() != 8) {
      h = lengths();
      return h.key_bytes == key.size() && common_prefix(h, key, 0) == key.size();
    }
    verify_in_heap<Memory>(block_, 16);
    std::uint64_t first_words[2];  // one access
    Memory::load_bytes(first_words, block_, sizeof first_words);
    h = head::unpack(first_words[0]);
    if (h.key_bytes != 8 || first_words[1] != word_of(key.data(), 8)) return false;
    validate_lengths(h);
    return true;
  }
  // The number of bytes that both keys share from `from` on; the bytes before it are equal.
  std::size_t common_prefix(const head& h, std::string_view key, std::size_t from) const {
    char part[chunk];
    const std::size_t end = std::min<std::size_t>(h.key_bytes, key.size());
    if (from > end) throw_corrupt_store("a record does not have the key that leads to it");
    for (std::size_t at = from; at < end; at += chunk) {
      const std::size_t n = std::min(chunk, end - at);
      load_key(at, part, n);
      const auto differs = std::mismatch(part, part + n, key.data() + at).first;
      if (differs != part + n) return at - from + static_cast<std::size_t>(differs - part);
    }
    return end - from;
  }
  std::uint64_t hash() const {
    const head h = lengths();
    if (h.key_bytes == 8) {
      const std::uint64_t key = word_at(8).load();
      return hash_bytes(&key, 8);
    }
    std::string key;
    load_key(h, key);
    return hash_bytes(key.data(), key.size());
  }

  // Overwrites the value and the expiry time in place. Returns false, with nothing changed, if they
  // need a block of another size.
  bool assign(const head& h, std::string_view value, std::uint64_t expires) const {
    const head now(h.key_bytes, static_cast<std::uint32_t>(value.size()), expires != 0);
    if (now.allocated_size() != h.allocated_size()) return false;
    STELE_ASSERT(now.bytes() <= h.allocated_size() && now.value_offset() == h.value_offset());
    if (now.pack() != h.pack()) word_at(0) = now.pack();
    store_padded(h.value_offset(), value);
    if (now.expires) word_at(now.expiry_offset()) = expires;
    return true;
  }

  // Starts loading the lines that a lookup needs; prefetch_rest: those after the first.
  void prefetch() const {
    Memory::prefetch(block_);
    prefetch_rest();
  }
  void prefetch_rest() const {
    __builtin_prefetch(block_ + line_size);
    __builtin_prefetch(block_ + 2 * line_size);
  }

 private:
  static constexpr std::size_t chunk = 256;

  word& word_at(std::size_t at) const { return *reinterpret_cast<word*>(block_ + at); }
  static std::uint64_t word_of(const char* from, std::size_t bytes) {
    std::uint64_t w = 0;
    std::memcpy(&w, from, bytes);
    return w;
  }
  // Stores whole words, so that a log need not record which bytes are valid.
  void store_padded(std::size_t at, std::string_view bytes) const {
    STELE_ASSERT(at % 8 == 0);
    const std::size_t whole = bytes.size() / 8 * 8;
    if (whole != 0) Memory::store_bytes(block_ + at, bytes.data(), whole);
    if (whole != bytes.size())
      word_at(at + whole) = word_of(bytes.data() + whole, bytes.size() - whole);
  }
  void fill(const head& h, std::string_view key, std::string_view value,
            std::uint64_t expires) const {
    STELE_ASSERT(h.key_bytes == key.size() && h.value_bytes == value.size());
    STELE_ASSERT((h.expires != 0) == (expires != 0));  // kv.md: a time on media is not 0
    alignas(8) char image[1024];
    if (h.bytes() > sizeof image) {
      word_at(0) = h.pack();
      store_padded(8, key);
      store_padded(h.value_offset(), value);
      if (h.expires) word_at(h.expiry_offset()) = expires;
      return;
    }
    std::memset(image + h.value_offset() - 8, 0, 8);
    std::memset(image + h.expiry_offset() - 8, 0, 8);
    const std::uint64_t lengths = h.pack();
    std::memcpy(image, &lengths, 8);
    std::memcpy(image + 8, key.data(), key.size());
    if (!value.empty()) std::memcpy(image + h.value_offset(), value.data(), value.size());
    if (h.expires) std::memcpy(image + h.expiry_offset(), &expires, 8);
    STELE_ASSERT(h.bytes() % 8 == 0 && h.bytes() <= h.allocated_size());
    Memory::store_bytes(block_, image, h.bytes());
  }

  char* block_;
};

}  // namespace stele::detail
