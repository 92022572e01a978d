// Commands that Redis itself executes, on native copies of the values: docs/protocol/redis.md, L1
// to L5. Their changes are stored in the command's unit.
#include <algorithm>
#include <map>

#include "collections.h"

namespace stele::redis {

namespace {

struct raw_key {
  raw_key(const call& c, api::text* name)
      : server(c.server), key(api::OpenKey(c.context, name, api::for_reading | api::for_writing)) {}
  ~raw_key() { api::CloseKey(key); }
  raw_key(const raw_key&) = delete;
  raw_key& operator=(const raw_key&) = delete;
  redis::server& server;
  api::key* key;
};

// What is copied of a sorted set: all members, or those that the command names.
enum class copied : std::uint8_t { whole, named };

// A key of the command, with what was copied.
struct native_copy {
  api::text* name;
  stored_item* item = nullptr;  // null: the key has none, or no value that the command could use
  item_kind kind = item_kind::string;
  long long expiry = 0;
  std::vector<element> elements;
};

std::vector<api::text*> keys_of(const call& c, const char* name) {
  std::vector<api::text*> found;
  for_each_key(c, name, [&](int place) {
    api::text* const key = c.text(place);
    if (std::ranges::none_of(found, [&](api::text* k) { return view(k) == view(key); }))
      found.push_back(key);
  });
  return found;
}

std::vector<element> named_members(const call& c, const open_key& key) {
  return look<stored_ranking>(key, [&](const stored_ranking& ranking) {
    std::vector<element> found;
    for (int i = 2; i < c.count; ++i)
      if (const auto score = ranking.content.find(c[i]))
        found.emplace_back(c[i], text_of_score(*score));
    return found;
  });
}

// redis.md L2: the key gets a native copy. The item stays in the pool.
native_copy copy_to_native(const call& c, api::text* name, copied of) {
  native_copy l{
      .name = name, .item = nullptr, .kind = item_kind::string, .expiry = 0, .elements = {}};
  {
    const open_key key(c, name, api::for_reading | api::without_touch);
    if (!key.is(item_kind::string) && !key.is(item_kind::sorted_set)) return l;
    l.item = key.item(), l.kind = key.kind(), l.expiry = key.expiry();
    const bool is_whole = of == copied::whole || l.kind == item_kind::string;
    l.elements = is_whole ? elements_of(key) : named_members(c, key);
  }
  STELE_ASSERT(l.item != nullptr && !is_placeholder(l.item));
  STELE_ASSERT(l.kind != item_kind::string || l.elements.size() == 1);
  const raw_key to(c, name);
  c.server.commands.note_side_effect();
  api::DeleteKey(to.key);
  c.server.keys->keep(l.item);
  if (l.kind == item_kind::string)
    api::StringSet(to.key, own_text(l.elements[0].first).get());
  else
    for (const auto& [member, score] : l.elements)
      api::ZsetAdd(to.key, score_of(score).value_or(0), own_text(member).get(), nullptr);
  if (l.expiry != 0 && !l.elements.empty()) api::SetAbsExpire(to.key, l.expiry);
  return l;
}

// redis.md L4: the key gets an item, and this expiry time.
void restore_item(const raw_key& to, item_kind kind, stored_item* item, long long expiry) {
  STELE_ASSERT(item != nullptr);
  api::ModuleTypeSetValue(to.key, to.server.type_of(kind), item);
  if (expiry != 0) api::SetAbsExpire(to.key, expiry);
}

long long expiry_of(const raw_key& key) {
  const long long when = api::GetAbsExpire(key.key);
  return when == api::no_expire ? 0 : when;
}

// Overwrites the parts of a string of the same length that differ.
void store_differences(stored_text& to, std::string_view before, std::string_view now) {
  STELE_ASSERT(before.size() == now.size() && to.value.size() == now.size());
  constexpr std::size_t part = 64;
  for (std::size_t at = 0; at < now.size(); at += part)
    if (const auto bytes = now.substr(at, part); bytes != before.substr(at, part))
      to.value.overwrite(at, bytes);
}

// Stores the string in the item, if it has changed. Returns whether it has.
result<bool> store_text(const call& c, const native_copy& l, long long expiry) {
  const raw_key key(c, l.name);
  std::size_t size = 0;
  const char* const at = api::StringDMA(key.key, &size, api::for_reading);
  const std::string now(at, size);
  keys& all = *c.server.keys;
  const bool was_text = l.item != nullptr && l.kind == item_kind::string;
  STELE_ASSERT(!was_text || l.elements.size() == 1);
  if (was_text && now == l.elements[0].first && expiry == l.expiry)
    return restore_item(key, l.kind, l.item, expiry), false;
  const bool in_place =
      was_text && now.size() == l.elements[0].first.size() && !all.must_copy(l.item);
  stored_item* item = l.item;
  auto done = all.change(now.size() + view(l.name).size() + bytes_of_item, [&] {
    if (in_place) {
      store_differences(as<stored_text>(item), l.elements[0].first, now);
    } else {
      item = all.add(item_kind::string, view(l.name), api::GetSelectedDb(c.context));
      as<stored_text>(item).value = now;
    }
    STELE_ASSERT(!all.must_copy(item));  // redis.md K2
    item->expiry = expiry;
    all.touch(item);
  });
  if (!done) return std::unexpected(std::move(done.error()));
  if (!in_place && l.item != nullptr) all.note_unlinked(l.item);
  restore_item(key, item_kind::string, item, expiry);
  return true;
}

// Stores the members of a sorted set that differ from the copy. Returns whether any does.
result<bool> store_scores(const call& c, const native_copy& l, long long expiry) {
  STELE_ASSERT(l.item != nullptr && l.kind == item_kind::sorted_set);
  const auto now = native_elements(c, l.name, item_kind::sorted_set);
  if (!now) return std::unexpected(now.error());
  {
    const raw_key key(c, l.name);
    restore_item(key, l.kind, l.item, l.expiry);
  }
  std::map<std::string, std::string> before(l.elements.begin(), l.elements.end());
  std::vector<element> stored;
  std::size_t bytes = 0;
  for (const auto& [member, score] : *now) {
    const auto at = before.find(member);
    if (at == before.end() || at->second != score) {
      stored.emplace_back(member, score);
      bytes += member.size() + 2 * bytes_of_element;
    }
    if (at != before.end()) before.erase(at);
  }
  const bool is_same = stored.empty() && before.empty();
  if (is_same && expiry == l.expiry) return false;
  open_key key(c, l.name, api::for_reading | api::for_writing);
  STELE_ASSERT(key.item() == nullptr || key.item() == l.item);
  if (expiry != l.expiry)
    if (auto done = key.set_expiry(expiry); !done) return std::unexpected(std::move(done.error()));
  if (is_same) return true;
  auto done = change<stored_ranking>(c, key, bytes, [&](stored_ranking& ranking) {
    for (const auto& [member, score] : before) ranking.content.erase(member);
    for (const auto& [member, score] : stored)
      ranking.content.put(member, score_of(score).value_or(0));
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return true;
}

// redis.md L4. Returns whether the command has changed the key.
bool store_changes(const call& c, const native_copy& l, copied of, bool changes) {
  int type = 0;
  long long expiry = l.expiry;
  {
    const raw_key key(c, l.name);
    type = api::KeyType(key.key);
    if (l.item != nullptr && (!changes || (type == api::empty_key && of == copied::named)))
      return restore_item(key, l.kind, l.item, l.expiry), false;
    // A command that replaces the value sets its expiry time; one that adds members may have had
    // none to copy it with.
    if (of == copied::whole) expiry = expiry_of(key);
  }
  if (type == api::empty_key) {
    if (l.item != nullptr) c.server.keys->note_unlinked(l.item);
    return l.item != nullptr;
  }
  const auto kind = native_kind(type);
  if (!kind) return false;
  if (*kind == item_kind::string) return must(store_text(c, l, expiry));
  if (*kind == item_kind::sorted_set && l.item != nullptr && l.kind == *kind)
    return must(store_scores(c, l, expiry));
  if (l.item != nullptr) c.server.keys->note_unlinked(l.item);
  must(import_value(c, l.name));
  return true;
}

// The length of a string that ends with this bit field; nullopt: Redis refuses the field.
std::optional<std::size_t> end_of_field(std::string_view type, std::string_view place) {
  if (!type.starts_with('u') && !type.starts_with('i')) return std::nullopt;
  const auto bits = integer_of(type.substr(1));
  if (!bits || *bits < 1 || *bits > (type.starts_with('u') ? 63 : 64)) return std::nullopt;
  const bool in_fields = place.starts_with('#');
  const auto number = integer_of(place.substr(in_fields ? 1 : 0));
  constexpr long long most = static_cast<long long>(longest_string) * 8;
  if (!number || *number < 0 || *number >= most) return std::nullopt;
  static_assert(most < std::numeric_limits<long long>::max() / 64);
  const long long first = *number * (in_fields ? *bits : 1);
  if (first >= most) return std::nullopt;
  return static_cast<std::size_t>(first + *bits + 7) / 8;
}

// The greatest length to which BITFIELD may extend a string; 0: Redis refuses the command.
std::size_t end_of_fields(const call& c) {
  std::size_t end = 0;
  for (int i = 2; i + 2 < c.count; ++i) {
    if (!equal_ignoring_case(c[i], "SET") && !equal_ignoring_case(c[i], "INCRBY")) continue;
    const auto of_this = end_of_field(c[i + 1], c[i + 2]);
    if (!of_this) return 0;
    end = std::max(end, *of_this);
  }
  return end;
}

int run_native(const call& c, const char* name, copied of, bool changes) {
  const auto keys = keys_of(c, name);
  if (changes) {
    std::size_t bytes = std::size_t{16} << 10;  // a counter of different elements
    for (api::text* key : keys) {
      const open_key there(c, key, api::for_reading | api::without_touch);
      if (there.item() != nullptr) bytes += 2 * memory_of(*c.server.keys, there.item());
    }
    for (int i = 1; i < c.count; ++i) bytes += c[i].size() + bytes_of_element;
    if (std::string_view(name) == "BITFIELD") bytes += end_of_fields(c);
    if (auto room = c.server.keys->reserve(bytes); !room) return answer_error(c, room.error());
  }
  STELE_ASSERT(!changes || c.server.keys->in_unit());  // redis.md L1: before L2
  std::vector<native_copy> loans;
  for (api::text* key : keys) loans.push_back(copy_to_native(c, key, of));
  api::reply* const reply = call_redis(c, name, "0v");
  bool has_changed = false;
  for (const native_copy& l : loans) has_changed |= store_changes(c, l, of, changes);
  if (has_changed) replicate(c, name);
  answer a(c);
  if (changes)
    a.end_unit();
  else
    a.rests_on_its_keys();
  return forward_reply(a.to(), reply);
}

template <literal Name, copied Of = copied::whole>
int reads(const call& c) {
  return run_native(c, Name.text, Of, false);
}
template <literal Name, copied Of = copied::whole>
int writes(const call& c) {
  return run_native(c, Name.text, Of, true);
}

constexpr command commands[] = {
    {"bitcount", reads<"BITCOUNT">, "readonly", 1, 1, 1, 2, 0},
    {"bitpos", reads<"BITPOS">, "readonly", 1, 1, 1, 3, 0},
    {"bitfield_ro", reads<"BITFIELD_RO">, "readonly fast", 1, 1, 1, 2, 0},
    {"bitfield", writes<"BITFIELD">, "write deny-oom", 1, 1, 1, 2, 0},
    {"bitop", writes<"BITOP">, "write deny-oom", 2, -1, 1, 4, 0},
    {"lcs", reads<"LCS">, "readonly", 1, 2, 1, 3, 0},
    {"pfadd", writes<"PFADD">, "write deny-oom fast", 1, 1, 1, 2, 0},
    {"pfcount", reads<"PFCOUNT">, "readonly may-replicate", 1, -1, 1, 2, 0},
    {"pfmerge", writes<"PFMERGE">, "write deny-oom", 1, -1, 1, 2, 0},
    {"pfdebug", writes<"PFDEBUG">, "write deny-oom admin", 2, 2, 1, 3, 0},
    {"geoadd", writes<"GEOADD", copied::named>, "write deny-oom", 1, 1, 1, 5, 0},
    {"geodist", reads<"GEODIST", copied::named>, "readonly", 1, 1, 1, 4, 0},
    {"geohash", reads<"GEOHASH", copied::named>, "readonly", 1, 1, 1, 2, 0},
    {"geopos", reads<"GEOPOS", copied::named>, "readonly", 1, 1, 1, 2, 0},
    {"geosearch", reads<"GEOSEARCH">, "readonly", 1, 1, 1, 7, 0},
    {"geosearchstore", writes<"GEOSEARCHSTORE">, "write deny-oom", 1, 2, 1, 8, 0},
    {"georadius", writes<"GEORADIUS">, "write deny-oom getkeys-api", 0, 0, 0, 6, 0},
    {"georadius_ro", reads<"GEORADIUS_RO">, "readonly", 1, 1, 1, 6, 0},
    {"georadiusbymember", writes<"GEORADIUSBYMEMBER">, "write deny-oom getkeys-api", 0, 0, 0, 5, 0},
    {"georadiusbymember_ro", reads<"GEORADIUSBYMEMBER_RO">, "readonly", 1, 1, 1, 5, 0},
};

}  // namespace

constinit const std::span<const command> native_commands(commands);

}  // namespace stele::redis
