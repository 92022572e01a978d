// The expiry index of a key-value store: its records that have an expiry time, in the order of
// these times.
//
// It is a store of its own, in a block of its own. A key is an expiry time and the reference of a
// record, both big-endian; its value is empty. Without such a record there is usually no index.
// The word is 0 then, as in zeroed memory.
#pragma once

#include <base/assert.h>
#include <containers/kv_clock.h>
#include <containers/kv_record.h>

#include <bit>
#include <optional>

namespace stele::detail {

template <class Memory>
class basic_kv_store;

template <class Memory>
class kv_expiry {
  using store = basic_kv_store<Memory>;

 public:
  struct entry {
    std::uint64_t expires;
    char* block;
  };

  bool exists() const { return index_.load() != 0; }
  void add(std::uint64_t expires, const char* block) {
    STELE_ASSERT(expires != 0 && block != nullptr);
    if (!exists()) make();
    index()->put(key_of(expires, block).view(), {});
  }
  void remove(std::uint64_t expires, const char* block) {
    if (!exists() || !index()->erase(key_of(expires, block).view()))
      throw_corrupt_store("an item with an expiry time is not in the expiry index");
  }
  // Calls f(entry) in the order of the times until it returns false.
  template <class F>
  void for_each(F&& f) const {
    if (!exists()) return;
    index()->for_each({}, {}, [&](std::string_view k, std::string_view) {
      if (k.size() != format::kv_expiry_key_bytes)
        throw_corrupt_store("a key of the expiry index has another length");
      return f(entry{word_at(k, 0), format::kv_decode_reference(this, word_at(k, 8))});
    });
  }
  // Number of entries; number of those with a time up to `now`.
  std::size_t size() const { return exists() ? index()->size() : 0; }
  std::size_t count_until(std::uint64_t now) const {
    std::size_t count = 0;
    for_each([&](const entry& e) { return e.expires <= now && ++count != 0; });
    return count;
  }

  template <class Visit>
  void visit_blocks(Visit& visit) const {
    if (!exists()) return;
    visit(static_cast<const void*>(index()));
    index()->visit_blocks(visit);
  }
  // The store checks that the index has its records.
  [[nodiscard]] result<> check() const {
    if (!exists()) return {};
    claim<Memory>(index(), sizeof(store));
    return index()->check();
  }

 private:
  struct key {
    std::uint64_t words[2];
    std::string_view view() const { return {reinterpret_cast<const char*>(words), sizeof words}; }
  };
  static std::uint64_t big_endian(std::uint64_t word) { return __builtin_bswap64(word); }
  key key_of(std::uint64_t expires, const char* block) const {
    return {{big_endian(expires), big_endian(format::kv_encode_reference(this, block))}};
  }
  static std::uint64_t word_at(std::string_view k, std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, k.data() + at, 8);
    return big_endian(word);
  }
  store* index() const {
    const std::uint64_t link = index_.load();
    auto* const s = reinterpret_cast<store*>(format::kv_decode_reference(this, link));
    verify_in_heap<Memory>(s, sizeof(store));
    s->verify_index_mark(link);
    if (!s->is_plain()) throw_corrupt_store("an index in an index");
    return s;
  }
  void make() {
    void* const block = Memory::allocate(sizeof(store), 8);
    Memory::fill_zero(block, sizeof(store));
    static_cast<store*>(block)->set_index_mark();
    STELE_ASSERT(!exists());
    index_ = format::kv_encode_reference(this, block) | format::kv_marked_bit;
  }

  typename Memory::template field<std::uint64_t> index_;  // a reference, or 0
};

}  // namespace stele::detail
