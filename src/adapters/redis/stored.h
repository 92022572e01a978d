// What the pool of a Redis server contains: docs/format/redis.md. An item is one key of one
// database with its value and expiry time. The table leads to all items.
#pragma once

#include <adapters/redis/stored_list.h>
#include <adapters/redis/stored_scores.h>
#include <base/assert.h>
#include <stele/hash_map.h>
#include <stele/pool.h>
#include <stele/set.h>
#include <stele/string.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stele::redis {

inline constexpr const char* layout_name = "stele redis 2";  // of such a pool

enum class item_kind : std::uint64_t { string = 1, hash = 2, list = 3, set = 4, sorted_set = 5 };
inline constexpr std::size_t item_kinds = 5;

struct stored_item {
  using pool_resident = void;
  field<std::uint64_t> place;     // in the table
  field<std::uint64_t> kind;      // an item_kind
  field<std::uint64_t> keyspace;  // a number, which a database has or had
  field<std::int64_t> expiry;     // ms since 1970; 0: never
  stele::string key;
};
struct stored_text {
  using pool_resident = void;
  static constexpr item_kind kind = item_kind::string;
  stored_item item;
  stele::string value;
};
struct stored_hash {
  using pool_resident = void;
  static constexpr item_kind kind = item_kind::hash;
  stored_item item;
  field<std::uint64_t> count;
  hash_map<stele::string, stele::string> content;
};
struct stored_sequence {
  using pool_resident = void;
  static constexpr item_kind kind = item_kind::list;
  stored_item item;
  stored_list content;
};
struct stored_set {
  using pool_resident = void;
  static constexpr item_kind kind = item_kind::set;
  stored_item item;
  field<std::uint64_t> count;
  hash_set<stele::string> content;
};
struct stored_ranking {
  using pool_resident = void;
  static constexpr item_kind kind = item_kind::sorted_set;
  stored_item item;
  stored_scores content;
};

inline item_kind kind_of(const stored_item* item) {
  return static_cast<item_kind>(item->kind.load());
}
// The item of this kind; its kind must be that.
template <class Stored>
Stored& as(stored_item* item) {
  STELE_ASSERT(item != nullptr);
  return *reinterpret_cast<Stored*>(item);
}
// Calls f with the item as what it is. In a transaction, as all that follows.
template <class F>
decltype(auto) as_its_kind(stored_item* item, F&& f) {
  // A placeholder has the kind 0, and is read as a string.
  STELE_ASSERT(item != nullptr && item->kind <= item_kinds);
  switch (kind_of(item)) {
    case item_kind::hash:
      return f(as<stored_hash>(item));
    case item_kind::list:
      return f(as<stored_sequence>(item));
    case item_kind::set:
      return f(as<stored_set>(item));
    case item_kind::sorted_set:
      return f(as<stored_ranking>(item));
    default:
      return f(as<stored_text>(item));
  }
}

// Every value is a sequence of elements, of one or two texts each: a string is one element, and a
// member of a sorted set has its score, in digits that give it exactly.
inline bool has_pairs(item_kind kind) noexcept {
  return kind == item_kind::hash || kind == item_kind::sorted_set;
}
std::uint64_t count_of(stored_item* item);
using element_visit = std::function<void(std::string_view first, std::string_view second)>;
void for_each_element(stored_item* item, const element_visit& visit);
// An element that is not there yet; of a list, at its end.
void add_element(stored_item* item, std::string_view first, std::string_view second);
// To an item of the same kind that has none.
void copy_elements(stored_item* from, stored_item* to);
// About what an item takes beside its key's bytes and its elements, and an element beside its
// bytes.
inline constexpr std::size_t bytes_of_item = sizeof(stored_ranking) + 256;
inline constexpr std::size_t bytes_of_element = 128;

struct stored_keys {
  using pool_resident = void;
  static constexpr std::uint64_t databases = 64, fan_out = 512;
  static constexpr std::uint64_t no_keyspace = ~std::uint64_t{0};
  static constexpr std::uint64_t most_flushes = std::uint64_t{1} << 62;

  // What is added to a database's number to get its keyspace's.
  field<std::uint64_t> moved[databases];
  field<std::uint64_t>
      newest;  // keyspaces given beyond the first ones, of which each database has one
  // Three levels of blocks with 512 pointers each, so that it grows by small blocks. A place is
  // null or leads to an item.
  using segment = field<stored_item*>;
  field<field<segment*>*> table[fan_out];
  field<std::uint64_t> segments;  // in use

  // In a transaction, as all that follows.
  std::uint64_t keyspace_of(int database) const;
  // -1: no database has it any more.
  int database_of(std::uint64_t keyspace) const;
  // The database gets this keyspace, which was given before and no other database has.
  void set_keyspace(int database, std::uint64_t keyspace);
  // The database gets a keyspace without items.
  void flush(int database);
  void swap(int one, int other);

  std::uint64_t places() const { return segments * fan_out; }
  stored_item* at(std::uint64_t place) const;
  // Throw failure(errc::full). The place is free.
  stored_item* add(std::uint64_t place, item_kind kind, std::string_view key,
                   std::uint64_t keyspace);
  void remove(stored_item* item);

  // Calls f(place, item) for all items. They lie anywhere, so the next ones are fetched meanwhile.
  template <class F>
  void for_each(F&& f) const {
    constexpr std::uint64_t ahead = 16;
    for (std::uint64_t s = 0; s < segments; ++s) {
      const segment* const places = table[s / fan_out].load()[s % fan_out].load();
      STELE_ASSERT(places != nullptr);
      for (std::uint64_t i = 0; i < fan_out; ++i) {
        if (i + ahead < fan_out) __builtin_prefetch(places[i + ahead].load());
        if (stored_item* const item = places[i]) f(s * fan_out + i, item);
      }
    }
  }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for (std::uint64_t s = 0; s < segments; ++s) {
      if (s % fan_out == 0) visit(static_cast<const void*>(table[s / fan_out].load()));
      visit(static_cast<const void*>(table[s / fan_out].load()[s % fan_out].load()));
    }
    for_each([&](std::uint64_t, stored_item* item) {
      visit(static_cast<const void*>(item));
      item->key.visit_blocks(visit);
      as_its_kind(item, [&]<class Stored>(Stored& stored) {
        if constexpr (Stored::kind == item_kind::string)
          stored.value.visit_blocks(visit);
        else
          stored.content.visit_blocks(visit);
      });
    });
  }
  // Whether all may be read and changed without further checks, whoever has written the pool.
  // Errors: corrupt.
  [[nodiscard]] result<> check() const;

 private:
  // format/redis.md: no two databases have the same keyspace.
  [[maybe_unused]] bool keyspaces_are_apart() const;
  // The next flush gives the one behind it.
  std::uint64_t last_keyspace() const { return databases - 1 + newest; }
  [[nodiscard]] result<> check_table() const;
  void put(std::uint64_t place, stored_item* item);
};

}  // namespace stele::redis
