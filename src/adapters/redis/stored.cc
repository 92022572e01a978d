// The table of items.
#include "stored.h"

#include <base/mutant.h>
#include <stele/memory.h>

namespace stele::redis {

std::uint64_t stored_keys::keyspace_of(int database) const {
  return static_cast<std::uint64_t>(database) + moved[database];
}

int stored_keys::database_of(std::uint64_t keyspace) const {
  for (int d = 0; d < static_cast<int>(databases); ++d)
    if (keyspace_of(d) == keyspace) return d;
  return -1;
}

void stored_keys::flush(int database) {
  const std::uint64_t given = newest + 1;
  if (!base::planted(base::mutant::redis_keyspace_again)) newest = given;
  moved[database] = databases - 1 + given - static_cast<std::uint64_t>(database);
}

void stored_keys::swap(int one, int other) {
  const std::uint64_t first = keyspace_of(one), second = keyspace_of(other);
  moved[one] = second - static_cast<std::uint64_t>(one);
  moved[other] = first - static_cast<std::uint64_t>(other);
}

stored_item* stored_keys::at(std::uint64_t place) const {
  const std::uint64_t s = place / fan_out;
  return table[s / fan_out].load()[s % fan_out].load()[place % fan_out];
}

// A new place is the one after all others.
void stored_keys::put(std::uint64_t place, stored_item* item) {
  const std::uint64_t s = place / fan_out;
  if (s == segments) {
    if (s == fan_out * fan_out)
      throw failure(error{errc::full, "the pool has as many keys as its table can have"});
    if (s % fan_out == 0) table[s / fan_out] = pool_memory::make_array<field<segment*>>(fan_out);
    table[s / fan_out].load()[s % fan_out] = pool_memory::make_array<segment>(fan_out);
    segments += 1;
  }
  table[s / fan_out].load()[s % fan_out].load()[place % fan_out] = item;
}

stored_item* stored_keys::add(std::uint64_t place, item_kind kind, std::string_view key,
                              std::uint64_t keyspace) {
  stored_item* const item = kind == item_kind::string ? &stele::make<stored_text>()->item
                                                      : &stele::make<stored_hash>()->item;
  item->place = place;
  item->kind = static_cast<std::uint64_t>(kind);
  item->keyspace = keyspace;
  item->key = key;
  put(place, item);
  return item;
}

void stored_keys::remove(stored_item* item) {
  put(item->place, nullptr);
  if (kind_of(item) == item_kind::string)
    stele::destroy(&text_of(item));
  else
    stele::destroy(&hash_of(item));
}

result<> stored_keys::check() const {
  for (std::uint64_t place = 0; place < places(); ++place) {
    const stored_item* const item = at(place);
    if (item != nullptr && (item->place != place || item->kind < 1 || item->kind > 2))
      return std::unexpected(error{
          errc::corrupt, "the item \"" + item->key.str() + "\" is not where the table has it"});
  }
  return {};
}

}  // namespace stele::redis
