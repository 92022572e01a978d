// What the pool of a Redis server contains: docs/format/redis.md. An item is one key of one
// database with its value and expiry time. The table leads to all items.
#pragma once

#include <stele/hash_map.h>
#include <stele/pool.h>
#include <stele/string.h>

#include <cstdint>
#include <string_view>

namespace stele::redis {

inline constexpr const char* layout_name = "stele redis 1";  // of such a pool

enum class item_kind : std::uint64_t { string = 1, hash = 2 };

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
  stored_item item;
  stele::string value;
};
struct stored_hash {
  using pool_resident = void;
  stored_item item;
  field<std::uint64_t> count;  // of fields
  hash_map<stele::string, stele::string> fields;
};

inline stored_text& text_of(stored_item* item) {
  return *reinterpret_cast<stored_text*>(item);
}
inline stored_hash& hash_of(stored_item* item) {
  return *reinterpret_cast<stored_hash*>(item);
}
inline item_kind kind_of(const stored_item* item) {
  return static_cast<item_kind>(item->kind.load());
}

struct stored_keys {
  using pool_resident = void;
  static constexpr std::uint64_t databases = 64, fan_out = 512;
  static constexpr std::uint64_t no_keyspace = ~std::uint64_t{0};

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
  // The database gets a keyspace without items.
  void flush(int database);
  void swap(int one, int other);

  std::uint64_t places() const { return segments * fan_out; }
  stored_item* at(std::uint64_t place) const;
  // Throw failure(errc::full). The place is free.
  stored_item* add(std::uint64_t place, item_kind kind, std::string_view key,
                   std::uint64_t keyspace);
  void remove(stored_item* item);

  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for (std::uint64_t s = 0; s < segments; ++s) {
      if (s % fan_out == 0) visit(static_cast<const void*>(table[s / fan_out].load()));
      visit(static_cast<const void*>(table[s / fan_out].load()[s % fan_out].load()));
    }
    for (std::uint64_t place = 0; place < places(); ++place)
      if (stored_item* const item = at(place)) {
        visit(static_cast<const void*>(item));
        item->key.visit_blocks(visit);
        if (kind_of(item) == item_kind::string)
          text_of(item).value.visit_blocks(visit);
        else
          hash_of(item).fields.visit_blocks(visit);
      }
  }
  // Errors: corrupt, when an item is not where it says.
  [[nodiscard]] result<> check() const;

 private:
  void put(std::uint64_t place, stored_item* item);
};

}  // namespace stele::redis
