// The named stores beside the store of a pool.
//
// The catalog is a store in a block of its own; its keys are the names, its values the references
// of the stores. Dropping a store takes its name at once and its content in steps: until that is
// done, the store is under a name that begins with a zero byte, which no name of a user does.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <containers/kv_record.h>

#include <string>

namespace stele::detail {

template <class Memory>
class basic_kv_store;

template <class Memory>
class kv_catalog {
  using store = basic_kv_store<Memory>;

 public:
  static bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= format::kv_max_name_size && !name.contains('\0');
  }

  bool exists() const { return names_.load() != 0; }
  // Null: there is no such store.
  store* find(std::string_view name) const {
    std::string value;
    return exists() && names()->get(name, value) ? store_at(value) : nullptr;
  }
  // A new store of a name that is not there.
  store* create(std::string_view name) {
    STELE_ASSERT(is_name(name));
    if (!exists()) {
      store* const names = make_empty();
      names->set_index_mark();
      names_ = format::kv_encode_reference(this, names) | format::kv_marked_bit;
    }
    store* const made = make_empty();
    made->set_version();
    put(name, made);
    return made;
  }
  // Whether there was such a store. Its content goes with clear_dropped().
  bool drop(std::string_view name) {
    STELE_ASSERT(is_name(name));  // a dropped store is dropped once
    store* const dropped = find(name);
    if (dropped == nullptr) return false;
    names()->erase(name);
    if (!planted(base::mutant::kv_drop_unlisted)) put(dropped_name(dropped), dropped);
    return true;
  }
  // Erases up to `items` items of dropped stores. Returns whether that was the last of them.
  bool clear_dropped(std::size_t items) {
    STELE_ASSERT(items != 0);
    if (!exists()) return true;
    const auto first = first_dropped();
    if (!first) return true;
    const auto& [name, dropped] = *first;
    if (dropped->erase_some(items) == items) return false;
    dropped->~store();
    Memory::deallocate(dropped);
    names()->erase(name);
    return !first_dropped();
  }

  // Calls f(name, store) in the order of the names; the names of dropped stores begin with a zero
  // byte.
  template <class F>
  void for_each(F&& f) const {
    if (!exists()) return;
    names()->for_each({}, {}, [&](std::string_view name, std::string_view value) {
      f(name, store_at(value));
      return true;
    });
  }
  template <class Visit>
  void visit_blocks(Visit& visit) const {
    if (!exists()) return;
    visit(static_cast<const void*>(names()));
    names()->visit_blocks(visit);
    for_each([&](std::string_view, const store* s) {
      visit(static_cast<const void*>(s));
      s->visit_blocks(visit);
    });
  }
  [[nodiscard]] result<> check() const {
    if (!exists()) return {};
    claim<Memory>(names(), sizeof(store));
    result<> outcome = names()->check();
    if (!outcome) return outcome;
    for_each([&](std::string_view name, const store* s) {
      if (!outcome) return;
      claim<Memory>(s, sizeof(store));
      outcome = s->check();
      const bool dropped = name.starts_with('\0');
      if (outcome && (dropped ? name != dropped_name(s) : !is_name(name)))
        outcome = corrupt_error("key-value store: a store has a name that none may have");
    });
    return outcome;
  }

 private:
  using reference_bytes = std::array<char, 8>;

  reference_bytes reference_of(const store* s) const {
    STELE_ASSERT(format::kv_decode_reference(this, format::kv_encode_reference(this, s)) ==
                 reinterpret_cast<const char*>(s));
    return std::bit_cast<reference_bytes>(format::kv_encode_reference(this, s));
  }
  void put(std::string_view name, const store* s) {
    const auto bytes = reference_of(s);
    names()->put(name, {bytes.data(), bytes.size()});
  }
  std::string dropped_name(const store* s) const {
    const auto bytes = reference_of(s);
    return std::string(1, '\0').append(bytes.data(), bytes.size());
  }
  std::optional<std::pair<std::string, store*>> first_dropped() const {
    std::optional<std::pair<std::string, store*>> found;
    names()->for_each({}, "\1", [&](std::string_view name, std::string_view value) {
      found.emplace(std::string(name), store_at(value));
      return false;
    });
    return found;
  }
  static store* checked(char* at) {
    verify_in_heap<Memory>(at, sizeof(store));
    return reinterpret_cast<store*>(at);
  }
  store* names() const {
    const std::uint64_t link = names_.load();
    store* const s = checked(format::kv_decode_reference(this, link));
    s->verify_index_mark(link);
    if (!s->is_plain()) throw_corrupt_store("a catalog of stores in a catalog");
    return s;
  }
  store* store_at(std::string_view value) const {
    std::uint64_t reference = 0;
    if (value.size() != sizeof reference)
      throw_corrupt_store("the catalog of stores has a reference of another length");
    std::memcpy(&reference, value.data(), sizeof reference);
    store* const s = checked(format::kv_decode_reference(this, reference));
    if (s->has_catalog()) throw_corrupt_store("a named store has named stores of its own");
    if (s->version() == 0)
      throw_corrupt_store("a named store has lost its version: it was zeroed or overwritten");
    return s;
  }
  static store* make_empty() {
    void* const block = Memory::allocate(sizeof(store), 8);
    Memory::fill_zero(block, sizeof(store));
    return static_cast<store*>(block);
  }

  typename Memory::template field<std::uint64_t> names_;  // a reference, or 0
};

}  // namespace stele::detail
