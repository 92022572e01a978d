// The table of items.
#include "stored.h"

#include <bit>

#include <stele/memory.h>

namespace stele::redis {

namespace {

struct table_place {
  std::uint64_t segment, offset;
};
constexpr table_place place_of(std::uint64_t place) {
  const std::uint64_t in_units = place / stored_keys::first_segment + 1;
  const auto segment = static_cast<std::uint64_t>(std::bit_width(in_units) - 1);
  return {segment, place - ((std::uint64_t{1} << segment) - 1) * stored_keys::first_segment};
}
static_assert(place_of(1023).segment == 0 && place_of(1024).segment == 1 &&
              place_of(1024).offset == 0 && place_of(3071).offset == 2047 &&
              place_of(3072).segment == 2);

}  // namespace

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
  newest = given;
  moved[database] = databases - 1 + given - static_cast<std::uint64_t>(database);
}

void stored_keys::swap(int one, int other) {
  const std::uint64_t first = keyspace_of(one), second = keyspace_of(other);
  moved[one] = second - static_cast<std::uint64_t>(one);
  moved[other] = first - static_cast<std::uint64_t>(other);
}

std::uint64_t stored_keys::places() const {
  std::uint64_t count = 0;
  for (std::uint64_t s = 0; s < segments && table[s] != nullptr; ++s) count += first_segment << s;
  return count;
}

stored_item* stored_keys::at(std::uint64_t place) const {
  const auto [segment, offset] = place_of(place);
  return table[segment].load()[offset];
}

void stored_keys::put(std::uint64_t place, stored_item* item) {
  const auto [segment, offset] = place_of(place);
  if (table[segment] == nullptr)
    table[segment] = pool_memory::make_array<field<stored_item*>>(first_segment << segment);
  table[segment].load()[offset] = item;
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
