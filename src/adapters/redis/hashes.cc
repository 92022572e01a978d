// Commands on hashes.
#include "commands.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace stele::redis {

namespace {

void notify(const call& c, const char* event, api::text* key) {
  api::NotifyKeyspaceEvent(c.context, api::event_hash, event, key);
}

std::optional<std::string> field_of(const open_key& key, std::string_view name) {
  if (key.hash() == nullptr) return std::nullopt;
  return here()
      .keys
      ->read([&]() -> std::optional<std::string> {
        const auto at = key.hash()->fields.find(name);
        if (at == key.hash()->fields.end()) return std::nullopt;
        return at->second.str();
      })
      .value_or(std::nullopt);
}

// In a change: gives the field the value. True: it is new.
bool store(stored_hash& hash, std::string_view name, std::string_view value) {
  const bool is_new = hash.fields.insert_or_assign(name, value).second;
  if (is_new) hash.count += 1;
  return is_new;
}

// Changes a hash, which is made if there is none, and copied if a child may read it. `body` returns
// false to take nothing.
result<> change(const call& c, open_key& key, std::size_t bytes,
                const std::function<void(stored_hash&)>& body) {
  keys& all = *here().keys;
  stored_hash* const before = key.hash();
  if (before != nullptr && bytes != 0)  // the buckets may double
    bytes += all.read([&] { return before->fields.bucket_count(); }).value_or(0) * 16;
  if (before != nullptr && all.must_copy(key.item())) bytes += memory_of(key.item());
  if (before != nullptr && !all.must_copy(key.item()))
    return all.change(bytes, [&] {
      body(*before);
      all.touch(&before->item);
    });
  stored_item* item = nullptr;
  const std::string_view name = view(key.name());
  auto done = all.change(bytes + name.size(), [&] {
    item = all.add(item_kind::hash, name, api::GetSelectedDb(c.context));
    if (before != nullptr) {
      before->fields.for_each([&](const auto& field, const auto& value) {
        store(hash_of(item), field.str(), value.str());
      });
      item->expiry = before->item.expiry.load();
    }
    body(hash_of(item));
  });
  if (!done) return done;
  if (before == nullptr)
    key.set(item);
  else
    key.replace(item);
  return {};
}

std::uint64_t size_of(const open_key& key) {
  if (key.hash() == nullptr) return 0;
  return here().keys->read([&] { return key.hash()->count.load(); }).value_or(0);
}

int put(const call& c, const char* name, bool answers_ok) {
  if (c.count % 2 != 0) {
    const std::string why = std::string("ERR wrong number of arguments for '") + name + "' command";
    return api::ReplyWithError(c.context, why.c_str());
  }
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, answers_ok ? "HMSET" : "HSET", true)) return api::ok;
  std::size_t bytes = 0;
  for (int i = 2; i < c.count; ++i) bytes += c[i].size() + 64;
  long long added = 0;
  if (auto stored = change(c, key, bytes,
                           [&](stored_hash& hash) {
                             for (int i = 2; i < c.count; i += 2)
                               added += store(hash, c[i], c[i + 1]);
                           });
      !stored)
    return answer_error(c.context, stored.error());
  replicate(c, "HSET");
  notify(c, "hset", c.text(1));
  answer a(c.context);
  a.end_unit();
  return answers_ok ? api::ReplyWithSimpleString(a.to(), "OK")
                    : api::ReplyWithLongLong(a.to(), added);
}
int hset(const call& c) {
  return put(c, "hset", false);
}
int hmset(const call& c) {
  return put(c, "hmset", true);
}

int hsetnx(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HSETNX", true)) return api::ok;
  if (field_of(key, c[2])) {
    answer a(c.context);
    a.rests_on(key.item());
    return api::ReplyWithLongLong(a.to(), 0);
  }
  if (auto stored = change(c, key, c[2].size() + c[3].size() + 64,
                           [&](stored_hash& hash) { store(hash, c[2], c[3]); });
      !stored)
    return answer_error(c.context, stored.error());
  replicate(c, "HSET");
  notify(c, "hset", c.text(1));
  return answer_number(c, 1);
}

void reply_field(api::context* to, const std::optional<std::string>& value) {
  if (value)
    api::ReplyWithStringBuffer(to, value->data(), value->size());
  else
    api::ReplyWithNull(to);
}

// A command that only reads a hash: calls reply(where to answer, key).
template <class Reply>
int read(const call& c, const char* name, Reply&& reply) {
  const open_key key(c, c.text(1), api::for_reading);
  if (is_other_kind(c, key, item_kind::hash, name, false)) return api::ok;
  answer a(c.context);
  a.rests_on(key.item());
  reply(a.to(), key);
  return api::ok;
}

int hget(const call& c) {
  return read(c, "HGET",
              [&](api::context* to, const open_key& key) { reply_field(to, field_of(key, c[2])); });
}

int hmget(const call& c) {
  return read(c, "HMGET", [&](api::context* to, const open_key& key) {
    api::ReplyWithArray(to, c.count - 2);
    for (int i = 2; i < c.count; ++i) reply_field(to, field_of(key, c[i]));
  });
}

int hexists(const call& c) {
  return read(c, "HEXISTS", [&](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, field_of(key, c[2]).has_value());
  });
}

int hstrlen(const call& c) {
  return read(c, "HSTRLEN", [&](api::context* to, const open_key& key) {
    const std::size_t size = field_of(key, c[2]).value_or("").size();
    api::ReplyWithLongLong(to, static_cast<long long>(size));
  });
}

int hlen(const call& c) {
  return read(c, "HLEN", [&](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, static_cast<long long>(size_of(key)));
  });
}

using item = std::pair<std::string, std::string>;

std::vector<item> items_of(const open_key& key) {
  std::vector<item> all;
  if (key.hash() != nullptr)
    (void)here().keys->read([&] {
      key.hash()->fields.for_each([&](const auto& field, const auto& value) {
        all.emplace_back(field.str(), value.str());
      });
      return true;
    });
  return all;
}

enum class part : std::uint8_t { both, names, values };

int reply_all(const call& c, const char* name, part of) {
  return read(c, name, [&](api::context* to, const open_key& key) {
    const auto all = items_of(key);
    if (of == part::both)
      api::ReplyWithMap(to, static_cast<long>(all.size()));
    else
      api::ReplyWithArray(to, static_cast<long>(all.size()));
    for (const auto& [field, value] : all) {
      if (of != part::values) api::ReplyWithStringBuffer(to, field.data(), field.size());
      if (of != part::names) api::ReplyWithStringBuffer(to, value.data(), value.size());
    }
  });
}
int hgetall(const call& c) {
  return reply_all(c, "HGETALL", part::both);
}
int hkeys(const call& c) {
  return reply_all(c, "HKEYS", part::names);
}
int hvals(const call& c) {
  return reply_all(c, "HVALS", part::values);
}

int hdel(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HDEL", true)) return api::ok;
  long long removed = 0;
  for (int i = 2; i < c.count && removed == 0; ++i) removed += field_of(key, c[i]).has_value();
  if (removed == 0) {
    answer a(c.context);
    a.rests_on(key.item());
    return api::ReplyWithLongLong(a.to(), 0);
  }
  removed = 0;
  bool is_empty = false;
  if (auto stored = change(c, key, 0,
                           [&](stored_hash& hash) {
                             for (int i = 2; i < c.count; ++i)
                               removed += static_cast<long long>(hash.fields.erase(c[i]));
                             hash.count -= static_cast<std::uint64_t>(removed);
                             is_empty = hash.count == 0;
                           });
      !stored)
    return answer_error(c.context, stored.error());
  if (is_empty) key.erase();
  replicate(c, "HDEL");
  notify(c, "hdel", c.text(1));
  if (is_empty) api::NotifyKeyspaceEvent(c.context, api::event_generic, "del", c.text(1));
  return answer_number(c, removed);
}

int hincrby(const call& c) {
  const auto by = integer_of(c[3]);
  if (!by) return api::ReplyWithError(c.context, not_an_integer);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HINCRBY", true)) return api::ok;
  const auto before = integer_of(field_of(key, c[2]).value_or("0"));
  if (!before) return api::ReplyWithError(c.context, "ERR hash value is not an integer");
  long long after = 0;
  if (__builtin_add_overflow(*before, *by, &after))
    return api::ReplyWithError(c.context, "ERR increment or decrement would overflow");
  if (auto stored = change(c, key, c[2].size() + 64,
                           [&](stored_hash& hash) { store(hash, c[2], std::to_string(after)); });
      !stored)
    return answer_error(c.context, stored.error());
  replicate(c, "HINCRBY");
  notify(c, "hincrby", c.text(1));
  return answer_number(c, after);
}

int hincrbyfloat(const call& c) {
  const auto by = float_of(c[3]);
  if (!by) return api::ReplyWithError(c.context, not_a_float);
  if (std::isinf(*by)) return api::ReplyWithError(c.context, "ERR value is NaN or Infinity");
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HINCRBYFLOAT", true)) return api::ok;
  const auto before = float_of(field_of(key, c[2]).value_or("0"));
  if (!before) return api::ReplyWithError(c.context, "ERR hash value is not a float");
  const long double after = *before + *by;
  if (std::isnan(after) || std::isinf(after))
    return api::ReplyWithError(c.context, "ERR increment would produce NaN or Infinity");
  const std::string text = text_of_float(after);
  if (auto stored = change(c, key, c[2].size() + text.size() + 64,
                           [&](stored_hash& hash) { store(hash, c[2], text); });
      !stored)
    return answer_error(c.context, stored.error());
  api::Replicate(c.context, "HSET", "ssb", c.text(1), c.text(2), text.data(), text.size());
  notify(c, "hincrbyfloat", c.text(1));
  answer a(c.context);
  a.end_unit();
  return api::ReplyWithStringBuffer(a.to(), text.data(), text.size());
}

// All fields in one answer, as Redis does for small hashes: so a cursor is always 0.
int hscan(const call& c) {
  if (!integer_of(c[2])) return api::ReplyWithError(c.context, "ERR invalid cursor");
  std::string_view pattern = "*";
  for (int i = 3; i < c.count; i += 2) {
    if (i + 1 == c.count) return api::ReplyWithError(c.context, syntax_error);
    if (equal_ignoring_case(c[i], "MATCH")) {
      pattern = c[i + 1];
    } else if (equal_ignoring_case(c[i], "COUNT")) {
      const auto count = integer_of(c[i + 1]);
      if (!count) return api::ReplyWithError(c.context, not_an_integer);
      if (*count < 1) return api::ReplyWithError(c.context, syntax_error);
    } else {
      return api::ReplyWithError(c.context, syntax_error);
    }
  }
  const open_key key(c, c.text(1), api::for_reading);
  if (is_other_kind(c, key, item_kind::hash, "HSCAN", false)) return api::ok;
  answer a(c.context);
  a.rests_on(key.item());
  auto all = items_of(key);
  std::erase_if(all, [&](const item& i) { return !matches(pattern, i.first); });
  api::context* const to = a.to();
  api::ReplyWithArray(to, 2);
  api::ReplyWithStringBuffer(to, "0", 1);
  api::ReplyWithArray(to, static_cast<long>(2 * all.size()));
  for (const auto& [field, value] : all) {
    api::ReplyWithStringBuffer(to, field.data(), field.size());
    api::ReplyWithStringBuffer(to, value.data(), value.size());
  }
  return api::ok;
}

int hrandfield(const call& c) {
  static std::mt19937_64 random{std::random_device{}()};
  const auto count = c.count > 2 ? integer_of(c[2]) : std::optional<long long>(1);
  if (!count) return api::ReplyWithError(c.context, not_an_integer);
  const bool with_values = c.count == 4 && equal_ignoring_case(c[3], "WITHVALUES");
  if (c.count == 4 && !with_values) return api::ReplyWithError(c.context, syntax_error);
  if (*count < -(1LL << (with_values ? 61 : 62)))
    return api::ReplyWithError(c.context, "ERR value is out of range");
  const open_key key(c, c.text(1), api::for_reading);
  if (is_other_kind(c, key, item_kind::hash, "HRANDFIELD", false)) return api::ok;
  answer a(c.context);
  a.rests_on(key.item());
  auto all = items_of(key);
  api::context* const to = a.to();
  if (c.count == 2) {
    if (all.empty()) return api::ReplyWithNull(to);
    const auto& [field, value] = all[random() % all.size()];
    return api::ReplyWithStringBuffer(to, field.data(), field.size());
  }
  std::vector<const item*> chosen;
  if (*count < 0) {
    for (long long i = 0; i < -*count && !all.empty(); ++i)
      chosen.push_back(&all[random() % all.size()]);
  } else {
    std::ranges::shuffle(all, random);
    for (std::size_t i = 0; i < std::min(all.size(), static_cast<std::size_t>(*count)); ++i)
      chosen.push_back(&all[i]);
  }
  const bool nested = with_values && (api::GetContextFlags(c.context) & api::speaks_resp3) != 0;
  api::ReplyWithArray(to, static_cast<long>(chosen.size() * (with_values && !nested ? 2 : 1)));
  for (const item* i : chosen) {
    if (nested) api::ReplyWithArray(to, 2);
    api::ReplyWithStringBuffer(to, i->first.data(), i->first.size());
    if (with_values) api::ReplyWithStringBuffer(to, i->second.data(), i->second.size());
  }
  return api::ok;
}

constexpr command commands[] = {
    {"hget", hget, "readonly fast", 1, 1, 1, 3, 3},
    {"hmget", hmget, "readonly fast", 1, 1, 1, 3, 0},
    {"hexists", hexists, "readonly fast", 1, 1, 1, 3, 3},
    {"hstrlen", hstrlen, "readonly fast", 1, 1, 1, 3, 3},
    {"hlen", hlen, "readonly fast", 1, 1, 1, 2, 2},
    {"hgetall", hgetall, "readonly", 1, 1, 1, 2, 2},
    {"hkeys", hkeys, "readonly", 1, 1, 1, 2, 2},
    {"hvals", hvals, "readonly", 1, 1, 1, 2, 2},
    {"hscan", hscan, "readonly", 1, 1, 1, 3, 0},
    {"hrandfield", hrandfield, "readonly", 1, 1, 1, 2, 4},
    {"hset", hset, "write deny-oom fast", 1, 1, 1, 4, 0},
    {"hmset", hmset, "write deny-oom fast", 1, 1, 1, 4, 0},
    {"hsetnx", hsetnx, "write deny-oom fast", 1, 1, 1, 4, 4},
    {"hdel", hdel, "write fast", 1, 1, 1, 3, 0},
    {"hincrby", hincrby, "write deny-oom fast", 1, 1, 1, 4, 4},
    {"hincrbyfloat", hincrbyfloat, "write deny-oom fast", 1, 1, 1, 4, 4},
};

}  // namespace

std::span<const command> hash_commands() {
  return commands;
}

}  // namespace stele::redis
