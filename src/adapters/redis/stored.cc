// The table of items.
#include "stored.h"

#include <base/assert.h>
#include <base/mutant.h>
#include <stele/memory.h>

#include <algorithm>

#include "numbers.h"
#include "stored_check.h"

namespace stele::redis {

std::uint64_t stored_keys::keyspace_of(int database) const {
  STELE_ASSERT(database >= 0 && database < static_cast<int>(databases));
  return static_cast<std::uint64_t>(database) + moved[database];
}

int stored_keys::database_of(std::uint64_t keyspace) const {
  for (int d = 0; d < static_cast<int>(databases); ++d)
    if (keyspace_of(d) == keyspace) return d;
  return -1;
}

bool stored_keys::keyspaces_are_apart() const {
  for (int d = 0; d < static_cast<int>(databases); ++d)
    if (database_of(keyspace_of(d)) != d) return false;
  return true;
}

void stored_keys::set_keyspace(int database, std::uint64_t keyspace) {
  STELE_ASSERT(base::holds(keyspace <= last_keyspace()));
  moved[database] = keyspace - static_cast<std::uint64_t>(database);
  STELE_ASSERT_WHOLE(base::holds(keyspaces_are_apart()));
}

// format/redis.md: a flush gives the keyspace behind all that were given.
void stored_keys::flush(int database) {
  STELE_ASSERT(database >= 0 && database < static_cast<int>(databases));
  const std::uint64_t given = newest + 1;
  STELE_ASSERT(last_keyspace() < no_keyspace - 1);
  if (!planted(base::mutant::redis_keyspace_again)) newest = given;
  moved[database] = databases - 1 + given - static_cast<std::uint64_t>(database);
  STELE_ASSERT(base::holds(keyspace_of(database) == last_keyspace()));
  STELE_ASSERT_WHOLE(base::holds(keyspaces_are_apart()));
}

void stored_keys::swap(int one, int other) {
  const std::uint64_t first = keyspace_of(one), second = keyspace_of(other);
  moved[one] = second - static_cast<std::uint64_t>(one);
  moved[other] = first - static_cast<std::uint64_t>(other);
  STELE_ASSERT(keyspace_of(one) == second && keyspace_of(other) == first);
}

stored_item* stored_keys::at(std::uint64_t place) const {
  STELE_ASSERT(place < places());
  const std::uint64_t s = place / fan_out;
  return table[s / fan_out].load()[s % fan_out].load()[place % fan_out];
}

// A new place is the one after all others.
void stored_keys::put(std::uint64_t place, stored_item* item) {
  const std::uint64_t s = place / fan_out;
  STELE_ASSERT(s <= segments);
  STELE_ASSERT(item == nullptr || item->place == place);  // format/redis.md: at its own place
  if (s == segments) {
    STELE_ASSERT(item != nullptr);
    if (s == fan_out * fan_out)
      throw failure(error{errc::full, "the pool has as many keys as its table can have"});
    if (s % fan_out == 0) table[s / fan_out] = pool_memory::make_array<field<segment*>>(fan_out);
    table[s / fan_out].load()[s % fan_out] = pool_memory::make_array<segment>(fan_out);
    segments += 1;
    STELE_ASSERT(segments <= fan_out * fan_out);
  }
  table[s / fan_out].load()[s % fan_out].load()[place % fan_out] = item;
}

namespace {

stored_item* make_item(item_kind kind) {
  STELE_ASSERT(kind >= item_kind::string && kind <= item_kind::sorted_set);
  switch (kind) {
    case item_kind::hash:
      return &stele::make<stored_hash>()->item;
    case item_kind::list:
      return &stele::make<stored_sequence>()->item;
    case item_kind::set:
      return &stele::make<stored_set>()->item;
    case item_kind::sorted_set:
      return &stele::make<stored_ranking>()->item;
    default:
      return &stele::make<stored_text>()->item;
  }
}

}  // namespace

stored_item* stored_keys::add(std::uint64_t place, item_kind kind, std::string_view key,
                              std::uint64_t keyspace) {
  STELE_ASSERT(place >= places() || at(place) == nullptr);
  STELE_ASSERT(base::holds(keyspace <= last_keyspace()));
  stored_item* const item = make_item(kind);
  STELE_ASSERT(item->expiry == 0);  // of a new item, whose memory is zeroed
  item->place = place;
  item->kind = static_cast<std::uint64_t>(kind);
  item->keyspace = keyspace;
  item->key = key;
  put(place, item);
  STELE_ASSERT(at(place) == item && kind_of(item) == kind);
  return item;
}

void stored_keys::remove(stored_item* item) {
  STELE_ASSERT(item != nullptr && item->place < places());
  STELE_ASSERT(at(item->place) == item);  // it is removed once
  put(item->place, nullptr);
  as_its_kind(item, [](auto& stored) { stele::destroy(&stored); });
}

namespace {

// format/redis.md: the count of a hash or a set is the number of its map's items. Large ones take
// too long to count.
template <class Stored>
[[maybe_unused]] bool counts_its_elements(const Stored& stored) {
  constexpr std::size_t few_buckets = 256;
  return stored.content.bucket_count() > few_buckets || stored.count == stored.content.size();
}

template <class Stored>
std::uint64_t counted(const Stored& stored) {
  STELE_ASSERT_WHOLE(counts_its_elements(stored));
  return stored.count;
}

}  // namespace

std::uint64_t count_of(stored_item* item) {
  return as_its_kind(item, []<class Stored>(Stored& stored) -> std::uint64_t {
    if constexpr (Stored::kind == item_kind::string)
      return 1;
    else if constexpr (requires { stored.count; })
      return counted(stored);
    else
      return stored.content.size();
  });
}

void for_each_element(stored_item* item, const element_visit& visit) {
  as_its_kind(item, [&]<class Stored>(Stored& stored) {
    if constexpr (Stored::kind == item_kind::string)
      visit(stored.value.str(), {});
    else if constexpr (Stored::kind == item_kind::hash)
      stored.content.for_each(
          [&](const auto& name, const auto& value) { visit(name.str(), value.str()); });
    else if constexpr (Stored::kind == item_kind::set)
      stored.content.for_each([&](const auto& member) { visit(member.str(), {}); });
    else if constexpr (Stored::kind == item_kind::list)
      stored.content.for_each(0, stored.content.size(), [&](const std::string& element) {
        visit(element, {});
        return true;
      });
    else
      stored.content.for_each(0, stored.content.size(), [&](std::string_view member, double score) {
        visit(member, text_of_score(score));
        return true;
      });
  });
}

// An element that is there already would make the count a wrong one.
void add_element(stored_item* item, std::string_view first, std::string_view second) {
  as_its_kind(item, [&]<class Stored>(Stored& stored) {
    if constexpr (Stored::kind == item_kind::string) {
      stored.value = first;
    } else if constexpr (Stored::kind == item_kind::hash) {
      [[maybe_unused]] const bool is_new = stored.content.insert(first, second).second;
      STELE_ASSERT(is_new);
      stored.count += 1;
      STELE_ASSERT_WHOLE(counts_its_elements(stored));
    } else if constexpr (Stored::kind == item_kind::set) {
      [[maybe_unused]] const bool is_new = stored.content.insert(first).second;
      STELE_ASSERT(is_new);
      stored.count += 1;
      STELE_ASSERT_WHOLE(counts_its_elements(stored));
    } else if constexpr (Stored::kind == item_kind::list) {
      stored.content.push_back(first);
    } else {
      [[maybe_unused]] const bool is_new = stored.content.put(first, score_of(second).value_or(0));
      STELE_ASSERT(is_new);
    }
  });
}

void copy_elements(stored_item* from, stored_item* to) {
  STELE_ASSERT(from != to && kind_of(from) == kind_of(to));
  STELE_ASSERT(kind_of(to) == item_kind::string || count_of(to) == 0);
  for_each_element(from, [&](std::string_view first, std::string_view second) {
    add_element(to, first, second);
  });
  STELE_ASSERT(count_of(to) == count_of(from));
}

// Inspection.

namespace {

result<> check_value(stored_item* item) {
  return as_its_kind(item, []<class Stored>(const Stored& stored) -> result<> {
    if constexpr (Stored::kind == item_kind::string)
      return check_text(stored.value);
    else if constexpr (Stored::kind == item_kind::hash)
      return check_map<basic_string<bounded_memory>>(stored.content);
    else if constexpr (Stored::kind == item_kind::set)
      return check_map<detail::no_value>(stored.content);
    else
      return stored.content.check_in_walk();
  });
}

// The same error, with the begin of the item's name, which may have any bytes.
std::unexpected<error> in_item(const stored_item& item, const error& why) {
  std::string name = item.key.str().substr(0, 60);
  std::ranges::replace_if(name, [](char c) { return c < ' ' || c > '~'; }, '?');
  return std::unexpected(error{why.code, "the value of \"" + name + "\": " + why.message});
}

// A hash and a set say how many elements they have; and a value without elements is no value.
result<> check_count(stored_item* item) {
  const bool counted = as_its_kind(item, []<class Stored>(const Stored& stored) {
    if constexpr (requires { stored.count; })
      return stored.count == stored.content.size();
    else
      return true;
  });
  if (counted && count_of(item) != 0) return {};
  return in_item(*item, {errc::corrupt, "it does not have as many elements as it says, or none"});
}

result<> check_item(stored_item* item, std::uint64_t place) {
  detail::validate_range(item, sizeof *item, alignof(stored_item));
  if (item->place != place || item->kind < 1 || item->kind > item_kinds)
    return detail::corrupt_error("an item is not where the table has it");
  as_its_kind(item, [](const auto& stored) { detail::claim_block(&stored, sizeof stored); });
  if (auto sound = check_text(item->key); !sound) return sound;
  try {
    if (auto sound = check_value(item); !sound) return in_item(*item, sound.error());
  } catch (const failure& f) {
    return in_item(*item, f.why());
  }
  return check_count(item);
}

}  // namespace

result<> stored_keys::check_table() const {
  if (segments > fan_out * fan_out)
    return detail::corrupt_error("the table of keys is larger than it can be");
  for (std::uint64_t s = 0; s < segments; ++s) {
    const auto* const several = table[s / fan_out].load();
    if (s % fan_out == 0) detail::claim_block(several, fan_out * sizeof *several);
    detail::claim_block(several[s % fan_out].load(), fan_out * sizeof(segment));
  }
  if (newest > most_flushes)
    return detail::corrupt_error("databases were flushed more often than they can be");
  for (int d = 0; d < static_cast<int>(databases); ++d) {
    if (database_of(keyspace_of(d)) != d)
      return detail::corrupt_error("two databases have the same keys");
    if (keyspace_of(d) > last_keyspace())
      return detail::corrupt_error("a database has keys that a flush will give to another one");
  }
  return {};
}

result<> stored_keys::check() const {
  return detail::check_bounded([&]() -> result<> {
    detail::claim_block(this, sizeof *this);
    if (auto sound = check_table(); !sound) return sound;
    result<> sound;
    for_each([&](std::uint64_t place, stored_item* item) {
      if (sound) sound = check_item(item, place);
      if (sound && item->keyspace > last_keyspace() && item->keyspace != no_keyspace)
        sound = in_item(*item, {errc::corrupt, "a flush will give it to a database"});
    });
    return sound;
  });
}

}  // namespace stele::redis
