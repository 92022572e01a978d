// Makes items of native values.
#include "collections.h"

namespace stele::redis {

std::optional<item_kind> native_kind(int type) noexcept {
  switch (type) {
    case api::string_key:
      return item_kind::string;
    case api::list_key:
      return item_kind::list;
    case api::hash_key:
      return item_kind::hash;
    case api::set_key:
      return item_kind::set;
    case api::sorted_set_key:
      return item_kind::sorted_set;
    default:
      return std::nullopt;
  }
}

namespace {

api::reply* ask(const call& c, api::text* key, item_kind kind) {
  switch (kind) {
    case item_kind::list:
      return call_server(c, "LRANGE", "scc", key, "0", "-1");
    case item_kind::hash:
      return call_server(c, "HGETALL", "s", key);
    case item_kind::set:
      return call_server(c, "SMEMBERS", "s", key);
    case item_kind::sorted_set:
      return call_server(c, "ZRANGE", "sccc", key, "0", "-1", "WITHSCORES");
    default:
      return call_server(c, "GET", "s", key);
  }
}

// A key with a native value of a type that the pool has, or a placeholder.
struct native_value {
  int database;
  std::string key;
};
std::vector<native_value> native_values(api::context* context) {
  struct found {
    int database;
    std::vector<native_value> all;
  } now{0, {}};
  const auto note = [](api::context*, api::text* name, api::key* key, void* to) {
    auto& f = *static_cast<found*>(to);
    if (key == nullptr) return;
    const int type = api::KeyType(key);
    if (native_kind(type) || (type == api::module_key && is_placeholder(static_cast<stored_item*>(
                                                             api::ModuleTypeGetValue(key)))))
      f.all.push_back({f.database, std::string(view(name))});
  };
  for (; now.database < static_cast<int>(stored_keys::databases); ++now.database) {
    if (api::SelectDb(context, now.database) != api::ok) break;
    api::scan_cursor* const cursor = api::ScanCursorCreate();
    while (api::Scan(context, cursor, note, &now) != 0) {
    }
    api::ScanCursorDestroy(cursor);
  }
  return std::move(now.all);
}

}  // namespace

result<std::vector<element>> native_elements(const call& c, api::text* key, item_kind kind) {
  std::vector<element> all;
  api::reply* const reply = ask(c, key, kind);
  if (reply == nullptr || api::CallReplyType(reply) == api::reply_error) {
    if (reply != nullptr) api::FreeCallReply(reply);
    constexpr const char* asking[] = {"", "GET", "HGETALL", "LRANGE", "SMEMBERS", "ZRANGE"};
    return std::unexpected(error{
        errc::unsupported, std::string("the server does not tell what a key has, as it takes no ") +
                               asking[static_cast<std::size_t>(kind)] +
                               "; start it without a rename-command of that, or use ACL rules"});
  }
  if (kind == item_kind::string) {
    all.emplace_back(text_of_reply(reply), std::string());
  } else {
    const std::size_t step = has_pairs(kind) ? 2 : 1, length = api::CallReplyLength(reply);
    for (std::size_t i = 0; i + step <= length; i += step)
      all.emplace_back(
          text_of_reply(api::CallReplyArrayElement(reply, i)),
          step == 2 ? text_of_reply(api::CallReplyArrayElement(reply, i + 1)) : std::string());
  }
  api::FreeCallReply(reply);
  return all;
}

result<> import_value(const call& c, api::text* name) {
  std::optional<item_kind> kind;
  {
    api::key* const key = api::OpenKey(c.context, name, api::for_reading | api::without_touch);
    if (key == nullptr) return {};
    kind = native_kind(api::KeyType(key));
    api::CloseKey(key);
  }
  if (!kind) return {};
  const auto elements = native_elements(c, name, *kind);
  open_key key(c, name, api::for_reading | api::for_writing);
  if (!key.is_foreign()) return {};  // it has expired meanwhile
  if (!elements) return std::unexpected(elements.error());
  const long long expiry = key.expiry();
  if (auto done = store_all(c, key, *kind, *elements, nullptr); !done) return done;
  STELE_ASSERT(key.is(*kind) && c.server.keys->in_unit());
  return expiry == 0 ? result<>{} : key.set_expiry(expiry);
}

result<std::uint64_t> import_all(const call& c) {
  constexpr std::uint64_t together = 256;
  std::uint64_t count = 0, keys = 0;
  for (int d = 0; d < static_cast<int>(stored_keys::databases); ++d)
    if (api::SelectDb(c.context, d) == api::ok) keys += api::DbSize(c.context);
  if (keys == c.server.load.values()) return 0;  // all were of the module's types
  for (const auto& [database, name] : native_values(c.context)) {
    if (api::SelectDb(c.context, database) != api::ok) continue;
    const own_text text(name);
    auto done = import_value(c, text.get());
    if (!done && done.error().code == errc::full && c.server.keys->in_unit()) {
      done = c.server.keys->end_unit(false);  // the pool can grow between units
      if (done) done = import_value(c, text.get());
    }
    if (!done) return std::unexpected(std::move(done.error()));
    if (++count % together != 0) continue;
    if (auto ended = c.server.keys->end_unit(false); !ended)
      return std::unexpected(std::move(ended.error()));
  }
  if (auto done = c.server.keys->end_unit(true); !done)
    return std::unexpected(std::move(done.error()));
  STELE_ASSERT(c.server.keys->all_rest_on() == 0);
  return count;
}

std::uint64_t drop_loaded(const call& c) {
  STELE_ASSERT_ALWAYS(c.server.startup.ignores_files());  // redis.md O3
  const auto all = native_values(c.context);
  for (const auto& [database, name] : all) {
    if (api::SelectDb(c.context, database) != api::ok) continue;
    const own_text text(name);
    open_key key(c, text.get(), api::for_reading | api::for_writing);
    key.erase();
  }
  return all.size();
}

}  // namespace stele::redis
