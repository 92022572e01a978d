// The module types: the functions that Redis calls for values.
#include <algorithm>
#include <unordered_set>

#include "boundary.h"
#include "collections.h"

namespace stele::redis {

namespace {

// The value of a key that was loaded from a file older than the pool.
stored_item* placeholder() noexcept {
  constexpr std::size_t largest =
      std::max({sizeof(stored_text), sizeof(stored_hash), sizeof(stored_sequence),
                sizeof(stored_set), sizeof(stored_ranking)});
  static std::uint64_t nothing[largest / sizeof(std::uint64_t)] = {};
  return reinterpret_cast<stored_item*>(nothing);
}

keys& all_keys() {
  return *this_server().keys;
}

stored_item* item_of(const void* value) {
  STELE_ASSERT(value != nullptr);
  return const_cast<stored_item*>(static_cast<const stored_item*>(value));
}

struct loaded_text {
  explicit loaded_text(api::io* from) : bytes(api::LoadStringBuffer(from, &size)) {}
  ~loaded_text() {
    if (bytes != nullptr) api::Free(bytes);
  }
  loaded_text(const loaded_text&) = delete;
  loaded_text& operator=(const loaded_text&) = delete;
  std::string_view view() const { return {bytes, size}; }
  std::size_t size = 0;
  char* bytes;
};

// The elements of a value as save() writes them. A client may send any payload (RESTORE), so all of
// it is validated. nullopt: it is not such a value.
std::optional<std::vector<element>> read_elements(api::io* from, item_kind kind) {
  const std::uint64_t count = kind == item_kind::string ? 1 : api::LoadUnsigned(from);
  if (count == 0) return std::nullopt;  // at the end of the payload too
  std::vector<element> elements;
  std::unordered_set<std::string> seen;
  const bool differ = kind != item_kind::string && kind != item_kind::list;
  for (std::uint64_t i = 0; i < count; ++i) {
    const loaded_text first(from);
    if (first.bytes == nullptr || api::IsIOError(from) != 0) return std::nullopt;
    if (differ && !seen.emplace(first.view()).second) return std::nullopt;
    elements.emplace_back(first.view(), std::string());
    if (!has_pairs(kind)) continue;
    const loaded_text second(from);
    if (second.bytes == nullptr || api::IsIOError(from) != 0) return std::nullopt;
    if (kind == item_kind::sorted_set && !score_of(second.view())) return std::nullopt;
    elements.back().second = second.view();
  }
  STELE_ASSERT(elements.size() == count && (!differ || seen.size() == count));
  return elements;
}

void* refuse_load(api::io* from, error why) {
  load_state& load = this_server().load;
  api::LogIOError(from, load.is_file() ? "warning" : "verbose",
                  "stele: a value cannot be loaded: %s", why.message.c_str());
  load.refuse(std::move(why));
  return nullptr;
}

// Where the value is to be; nullopt: Redis does not say, as for a value of no key.
struct named_place {
  std::string_view key;
  int database;
};
std::optional<named_place> place_of(const api::text* key, int database) {
  if (key == nullptr || database < 0 || database >= static_cast<int>(stored_keys::databases))
    return std::nullopt;
  return named_place{view(key), database};
}
error no_key() {
  return {errc::unsupported, "the server does not tell which key the value is of"};
}

// The new item has no key yet: see free().
void* load(api::io* from, int encoding, item_kind kind) {
  server& in = this_server();
  in.load.forget_refusal();
  const auto elements = encoding == 0 ? read_elements(from, kind) : std::nullopt;
  if (!elements)
    return refuse_load(from, {errc::corrupt, "its elements are not what the module has saved"});
  if (in.startup.ignores_files()) return placeholder();
  const auto to = place_of(api::GetKeyNameFromIO(from), api::GetDbIdFromIO(from));
  if (!to) return refuse_load(from, no_key());
  std::size_t bytes = bytes_of_item;
  for (const auto& [first, second] : *elements)
    bytes += first.size() + second.size() + bytes_of_element;
  stored_item* item = nullptr;
  const auto add = [&] {
    item = in.keys->add(kind, to->key, to->database);
    for (const auto& [first, second] : *elements) add_element(item, first, second);
    STELE_ASSERT(count_of(item) == elements->size());
  };
  // A unit that earlier commands have changed must not end here to get room.
  const auto done =
      in.load.may_end_unit() ? in.keys->change_apart(bytes, add) : in.keys->change(bytes, add);
  if (in.load.note_value()) (void)in.keys->end_unit(false);
  if (!done) return refuse_load(from, done.error());
  STELE_ASSERT(item != nullptr && !is_placeholder(item));
  in.load.unclaimed.set(item);
  return item;
}
template <item_kind Kind>
void* load_kind(api::io* from, int encoding) noexcept {
  try {
    return load(from, encoding, Kind);
  } catch (const std::bad_alloc&) {
    return refuse_load(from, {errc::full, no_memory});
  }
}

// Calls each(kind, first, second) for all elements.
template <class Each>
void for_each_of(const void* value, Each&& each) {
  (void)all_keys().read([&] {
    const item_kind kind = kind_of(item_of(value));
    STELE_ASSERT(is_placeholder(item_of(value)) || count_of(item_of(value)) != 0);
    for_each_element(item_of(value), [&](std::string_view first, std::string_view second) {
      each(kind, first, second);
    });
  });
}

void save(api::io* to, void* value) {
  const auto [kind, count] =
      all_keys()
          .read([&] { return std::pair(kind_of(item_of(value)), count_of(item_of(value))); })
          .value_or(std::pair(item_kind::string, std::uint64_t{0}));
  if (kind != item_kind::string) api::SaveUnsigned(to, count);
  for_each_of(value, [&](item_kind, std::string_view first, std::string_view second) {
    api::SaveStringBuffer(to, first.data(), first.size());
    if (has_pairs(kind)) api::SaveStringBuffer(to, second.data(), second.size());
  });
}

void rewrite(api::io* to, api::text* key, void* value) {
  for_each_of(value, [&](item_kind kind, std::string_view first, std::string_view second) {
    constexpr const char* commands[] = {"",           "stele.set", "stele.hset", "stele.rpush",
                                        "stele.sadd", "stele.zadd"};
    const char* const command = commands[static_cast<std::size_t>(kind)];
    if (kind == item_kind::sorted_set) std::swap(first, second);
    if (has_pairs(kind))
      api::EmitAOF(to, command, "sbb", key, first.data(), first.size(), second.data(),
                   second.size());
    else
      api::EmitAOF(to, command, "sb", key, first.data(), first.size());
  });
}

// The digest of a list depends on the order of its elements, those of other types do not.
void add_to_digest(api::digest* to, void* value) {
  for_each_of(value, [&](item_kind kind, std::string_view first, std::string_view second) {
    api::DigestAddStringBuffer(to, first.data(), first.size());
    if (has_pairs(kind)) api::DigestAddStringBuffer(to, second.data(), second.size());
    if (kind != item_kind::list) api::DigestEndSequence(to);
  });
  api::DigestEndSequence(to);
}

// The item is removed by unlinked(), in the main thread; free() may run in another one. An item
// that was loaded and got no key, because the payload is damaged or has expired, is removed here,
// in the thread that loaded it.
void free(void* value) {
  stored_item* const item = item_of(value);
  if (this_server().load.unclaimed.take(item)) all_keys().note_unlinked(item);
}

// While it evicts, the server checks its used memory after each key, but the item is freed later:
// so its bytes are subtracted now.
void unlinked(api::key_context*, const void* value) {
  server& in = this_server();
  stored_item* const item = item_of(value);
  (void)in.load.unclaimed.take(item);
  if (is_placeholder(item)) return;
  in.keys->note_unlinked(item);
  counted_memory& memory = in.memory;
  if (memory.is_on() && api::GetUsedMemoryRatio() > 1)
    memory.set(memory.bytes() - std::min(memory.bytes(), memory_of(*in.keys, item)));
}

// Freed in the main thread at once, as there is nothing to free.
std::size_t free_effort(api::key_context*, const void*) {
  return 1;
}

void* copy(api::key_context* of, const void* value) {
  stored_item* const from = item_of(value);
  if (is_placeholder(from)) return from;
  server& in = this_server();
  const auto to = place_of(api::GetToKeyNameFromOptCtx(of), api::GetToDbIdFromOptCtx(of));
  if (!to) {
    in.copy_refusal = no_key();
    return nullptr;
  }
  keys& all = *in.keys;
  stored_item* item = nullptr;
  const auto done = all.change(memory_of(all, from) + to->key.size() + bytes_of_item, [&] {
    item = all.add(kind_of(from), to->key, to->database);
    copy_elements(from, item);
  });
  if (done) return item;
  in.copy_refusal = done.error();
  return nullptr;
}

std::size_t memory(api::key_context*, const void* value, std::size_t) {
  return memory_of(all_keys(), item_of(value));
}

}  // namespace

bool is_placeholder(const stored_item* item) noexcept {
  return item == placeholder();
}

std::size_t memory_of(keys& all, stored_item* item) {
  if (is_placeholder(item)) return 0;
  return all
      .read([&] {
        std::size_t bytes =
            item->key.size() + as_its_kind(item, [](const auto& stored) { return sizeof stored; });
        const std::size_t each = kind_of(item) == item_kind::string ? 0 : bytes_of_element / 2;
        for_each_element(item, [&](std::string_view first, std::string_view second) {
          bytes += first.size() + second.size() + each;
        });
        return bytes;
      })
      .value_or(0);
}

bool register_types(api::context* of) {
  struct known {
    item_kind kind;
    const char* name;
    void* (*load)(api::io*, int);
  };
  constexpr known all[] = {
      {item_kind::string, "stele-str", load_kind<item_kind::string>},
      {item_kind::hash, "stele-hsh", load_kind<item_kind::hash>},
      {item_kind::list, "stele-lst", load_kind<item_kind::list>},
      {item_kind::set, "stele-set", load_kind<item_kind::set>},
      {item_kind::sorted_set, "stele-zst", load_kind<item_kind::sorted_set>},
  };
  static_assert(std::size(all) == item_kinds);
  for (const auto& [kind, name, load] : all) {
    api::type_methods methods;
    methods.load = load, methods.save = bounded<save>, methods.rewrite = bounded<rewrite>;
    methods.add_to_digest = bounded<add_to_digest>;
    methods.free = bounded<free>, methods.free_effort_of_key = free_effort;
    methods.unlinked_from = bounded<unlinked>, methods.copy_to = bounded<copy>;
    methods.memory_of_key = bounded<memory>;
    api::type*& type = this_server().types[static_cast<std::size_t>(kind)];
    type = api::CreateDataType(of, name, 0, &methods);
    if (type == nullptr) return false;
  }
  return true;
}

}  // namespace stele::redis
