// As Redis: of a few random keys, the one that the policy prefers.
#include "eviction.h"

#include <climits>

#include "collections.h"

namespace stele::redis {

namespace {

enum class choice : std::uint8_t { any, unused_longest, used_least, expires_first };
struct policy {
  bool only_with_expiry = false;
  choice by = choice::any;
};

// nullopt: nothing is evicted.
std::optional<policy> policy_of(const call& c) {
  const std::string name = text_setting(c, "maxmemory-policy");
  policy p;
  p.only_with_expiry = name.starts_with("volatile-");
  if (!p.only_with_expiry && !name.starts_with("allkeys-")) return std::nullopt;
  if (name.ends_with("-lru")) p.by = choice::unused_longest;
  if (name.ends_with("-lfu")) p.by = choice::used_least;
  if (name.ends_with("-ttl")) p.by = choice::expires_first;
  return p;
}

struct candidate {
  stored_item* item = nullptr;
  std::string name;
  int database = 0;
  long long worth = LLONG_MAX;  // the least is evicted
};

// A random key; without an item if the place is free, or the policy excludes the key.
candidate any_key(const call& c, const policy& p) {
  candidate found;
  keys& all = *c.server.keys;
  (void)all.read([&] {
    stored_item* const item = all.any_item(random_numbers()());
    if (item == nullptr || (p.only_with_expiry && item->expiry == 0)) return;
    STELE_ASSERT(all.root().at(item->place) == item);
    found.database = all.root().database_of(item->keyspace);
    if (found.database < 0) return;
    found.item = item;
    found.name = item->key.str();
    found.worth = p.by == choice::expires_first ? item->expiry.load() : 0;
  });
  return found;
}

// How much its use speaks against evicting the key; LLONG_MAX: it has been removed already.
long long worth_of(const call& c, const candidate& of, choice by) {
  const own_text name(of.name);
  const open_key key(c, name.get(), api::for_reading | api::without_touch);
  STELE_ASSERT(of.item != nullptr && of.database >= 0);
  if (key.item() != of.item) return LLONG_MAX;
  if (by == choice::used_least) return key.frequency();
  if (by == choice::unused_longest) return -key.idle_ms();
  return of.worth;
}

candidate choose(const call& c, const policy& p) {
  constexpr int samples = 5, looked_at = 256;  // many places may be free, or of keys that stay
  candidate best;
  for (int seen = 0, looks = 0; seen < samples && looks < looked_at; ++looks) {
    candidate next = any_key(c, p);
    if (next.item == nullptr || api::SelectDb(c.context, next.database) != api::ok) continue;
    next.worth = worth_of(c, next, p.by);
    if (next.worth == LLONG_MAX) continue;
    ++seen;
    if (next.worth < best.worth) best = std::move(next);
  }
  STELE_ASSERT((best.item == nullptr) == (best.worth == LLONG_MAX));
  return best;
}

}  // namespace

bool may_evict(const call& c) {
  return (api::GetContextFlags(c.context) & (api::is_replica | api::in_multi | api::in_script)) ==
             0 &&
         policy_of(c).has_value();
}

std::uint64_t evict(const call& c, std::size_t bytes) {
  const auto p = policy_of(c);
  if (!p) return 0;
  STELE_ASSERT(!c.server.keys->in_unit());  // the eviction is a unit of its own
  const int database = api::GetSelectedDb(c.context);
  std::uint64_t count = 0;
  for (std::size_t freed = 0; freed < bytes; ++count) {
    const candidate gone = choose(c, *p);
    if (gone.item == nullptr || api::SelectDb(c.context, gone.database) != api::ok) break;
    const own_text name(gone.name);
    freed += memory_of(*c.server.keys, gone.item);
    {
      open_key key(c, name.get(), api::for_reading | api::for_writing);
      key.erase();
    }
    replicate_as(c, "DEL", "s", name.get());
    api::NotifyKeyspaceEvent(c.context, api::event_evicted, "evicted", name.get());
  }
  api::SelectDb(c.context, database);
  c.server.evicted += count;
  return count;
}

}  // namespace stele::redis
