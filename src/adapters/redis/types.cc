// The types of values: what the server asks of them.
#include "commands.h"

#include <cstring>

namespace stele::redis {

namespace {

// Stands for what the server has loaded from a file of its own, and the pool does not have.
stored_item* placeholder() noexcept {
  static std::uint64_t nothing[sizeof(stored_hash) / sizeof(std::uint64_t)] = {};
  return reinterpret_cast<stored_item*>(nothing);
}

keys& all_keys() {
  return *here().keys;
}

stored_item* placeholder_for(api::io* from) {
  here().placeholders.emplace_back(api::GetDbIdFromIO(from), view(api::GetKeyNameFromIO(from)));
  return placeholder();
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

// Of a long load, some hundred keys are one unit.
void end_unit_of_load() {
  constexpr std::uint64_t together = 256;
  if (here().is_loading && ++here().loaded % together == 0) (void)all_keys().end_unit(false);
}

void* load_text(api::io* from, int) {
  const loaded_text value(from);
  if (value.bytes == nullptr) return nullptr;
  if (here().loads_nothing) return placeholder_for(from);
  stored_item* item = nullptr;
  const auto done = all_keys().change(value.size + 64, [&] {
    item = all_keys().add(item_kind::string, view(api::GetKeyNameFromIO(from)),
                          api::GetDbIdFromIO(from));
    text_of(item).value = value.view();
  });
  end_unit_of_load();
  return done ? item : nullptr;
}

void save_text(api::io* to, void* value) {
  const std::string bytes = value_of(text_of(static_cast<stored_item*>(value)));
  api::SaveStringBuffer(to, bytes.data(), bytes.size());
}

void rewrite_text(api::io* to, api::text* key, void* value) {
  const std::string bytes = value_of(text_of(static_cast<stored_item*>(value)));
  api::EmitAOF(to, "SET", "sb", key, bytes.data(), bytes.size());
}

void* load_hash(api::io* from, int) {
  const std::uint64_t count = api::LoadUnsigned(from);
  std::vector<std::pair<std::string, std::string>> fields;
  std::size_t bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const loaded_text field(from), value(from);
    if (field.bytes == nullptr || value.bytes == nullptr) return nullptr;
    fields.emplace_back(field.view(), value.view());
    bytes += field.size + value.size + 64;
  }
  if (here().loads_nothing) return placeholder_for(from);
  stored_item* item = nullptr;
  const auto done = all_keys().change(bytes + 64, [&] {
    item = all_keys().add(item_kind::hash, view(api::GetKeyNameFromIO(from)),
                          api::GetDbIdFromIO(from));
    for (const auto& [field, value] : fields) hash_of(item).fields.insert(field, value);
    hash_of(item).count = fields.size();
  });
  end_unit_of_load();
  return done ? item : nullptr;
}

template <class Each>
void for_each_field(void* value, Each&& each) {
  (void)all_keys().read([&] {
    hash_of(static_cast<stored_item*>(value))
        .fields.for_each([&](const auto& field, const auto& of) { each(field.str(), of.str()); });
    return true;
  });
}

void save_hash(api::io* to, void* value) {
  api::SaveUnsigned(
      to, all_keys()
              .read([&] { return hash_of(static_cast<stored_item*>(value)).count.load(); })
              .value_or(0));
  for_each_field(value, [&](const std::string& field, const std::string& of) {
    api::SaveStringBuffer(to, field.data(), field.size());
    api::SaveStringBuffer(to, of.data(), of.size());
  });
}

void rewrite_hash(api::io* to, api::text* key, void* value) {
  for_each_field(value, [&](const std::string& field, const std::string& of) {
    api::EmitAOF(to, "HSET", "sbb", key, field.data(), field.size(), of.data(), of.size());
  });
}

void digest_text(api::digest* to, void* value) {
  const std::string bytes = value_of(text_of(static_cast<stored_item*>(value)));
  api::DigestAddStringBuffer(to, bytes.data(), bytes.size());
  api::DigestEndSequence(to);
}
void digest_hash(api::digest* to, void* value) {
  for_each_field(value, [&](const std::string& field, const std::string& of) {
    api::DigestAddStringBuffer(to, field.data(), field.size());
    api::DigestAddStringBuffer(to, of.data(), of.size());
    api::DigestEndSequence(to);
  });
}

// The item goes in unlinked(), in the main thread; this may be another one.
void free(void*) {}

void unlinked(api::key_context*, const void* value) {
  auto* const item = const_cast<stored_item*>(static_cast<const stored_item*>(value));
  if (!is_placeholder(item)) all_keys().note_unlinked(item);
}

// Freed in the main thread at once, as there is nothing to free.
std::size_t free_effort(api::key_context*, const void*) {
  return 1;
}

void* copy(api::key_context* of, const void* value) {
  auto* const from = const_cast<stored_item*>(static_cast<const stored_item*>(value));
  const std::string_view name = view(api::GetToKeyNameFromOptCtx(of));
  stored_item* item = nullptr;
  const auto done = all_keys().change(memory_of(from) + name.size(), [&] {
    item = all_keys().add(kind_of(from), name, api::GetToDbIdFromOptCtx(of));
    if (kind_of(from) == item_kind::string) {
      text_of(item).value = text_of(from).value.str();
    } else {
      hash_of(from).fields.for_each([&](const auto& field, const auto& of_field) {
        hash_of(item).fields.insert(field.str(), of_field.str());
      });
      hash_of(item).count = hash_of(from).count.load();
    }
  });
  return done ? item : nullptr;
}

std::size_t memory(api::key_context*, const void* value, std::size_t) {
  return memory_of(const_cast<stored_item*>(static_cast<const stored_item*>(value)));
}

}  // namespace

bool is_placeholder(const stored_item* item) noexcept {
  return item == placeholder();
}

std::size_t memory_of(stored_item* item) {
  if (is_placeholder(item)) return 0;
  return all_keys()
      .read([&] {
        std::size_t bytes = item->key.size();
        if (kind_of(item) == item_kind::string)
          return bytes + sizeof(stored_text) + text_of(item).value.size();
        hash_of(item).fields.for_each([&](const auto& field, const auto& value) {
          bytes += 64 + field.size() + value.size();
        });
        return bytes + sizeof(stored_hash);
      })
      .value_or(0);
}

bool register_types(api::context* of) {
  api::type_methods common;
  common.free = free;
  common.free_effort_of_key = free_effort;
  common.unlinked_from = unlinked;
  common.copy_to = copy;
  common.memory_of_key = memory;
  api::type_methods text = common, hash = common;
  text.load = load_text, text.save = save_text, text.rewrite = rewrite_text;
  text.add_to_digest = digest_text;
  hash.load = load_hash, hash.save = save_hash, hash.rewrite = rewrite_hash;
  hash.add_to_digest = digest_hash;
  here().text_type = api::CreateDataType(of, "stele-str", 0, &text);
  here().hash_type = api::CreateDataType(of, "stele-hsh", 0, &hash);
  return here().text_type != nullptr && here().hash_type != nullptr;
}

}  // namespace stele::redis
