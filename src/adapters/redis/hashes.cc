// Commands on hashes.
#include "collections.h"

#include <cmath>

namespace stele::redis {

namespace {

std::optional<std::string> field_of(const open_key& key, std::string_view name) {
  return look<stored_hash>(key, [&](const stored_hash& hash) -> std::optional<std::string> {
    const auto at = hash.content.find(name);
    if (at == hash.content.end()) return std::nullopt;
    return at->second.str();
  });
}

// In a change: gives the field the value. True: it is new.
bool store(stored_hash& hash, std::string_view name, std::string_view value) {
  const bool is_new = hash.content.insert_or_assign(name, value).second;
  if (is_new) hash.count += 1;
  STELE_ASSERT(hash.count != 0 && hash.content.contains(name));
  return is_new;
}

// The field gets the value. Errors: as change_item.
result<bool> set_field(const call& c, open_key& key, std::string_view name,
                       std::string_view value) {
  return change<stored_hash>(c, key, name.size() + value.size() + bytes_of_element,
                             [&](stored_hash& hash) { store(hash, name, value); });
}

void notify(const call& c, const char* event) {
  redis::notify(c, item_kind::hash, event, c.text(1));
}

int put(const call& c, const char* name, bool answers_ok) {
  if (c.count % 2 != 0) {
    const std::string why = std::string("ERR wrong number of arguments for '") + name + "' command";
    return api::ReplyWithError(c.context, why.c_str());
  }
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, answers_ok ? "HMSET" : "HSET", true)) return api::ok;
  std::size_t bytes = 0;
  for (int i = 2; i < c.count; ++i) bytes += c[i].size() + bytes_of_element / 2;
  long long added = 0;
  if (auto stored = change<stored_hash>(c, key, bytes,
                                        [&](stored_hash& hash) {
                                          added = 0;
                                          for (int i = 2; i < c.count; i += 2)
                                            added += store(hash, c[i], c[i + 1]);
                                          STELE_ASSERT(added <= (c.count - 2) / 2);
                                        });
      !stored)
    return answer_error(c, stored.error());
  replicate(c, "HSET");
  notify(c, "hset");
  answer a(c);
  a.end_unit();
  return answers_ok ? api::ReplyWithSimpleString(a.to(), "OK")
                    : api::ReplyWithLongLong(a.to(), added);
}

int hsetnx(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HSETNX", true)) return api::ok;
  if (field_of(key, c[2])) return answer_unchanged(c, key, 0);
  if (auto stored = set_field(c, key, c[2], c[3]); !stored) return answer_error(c, stored.error());
  replicate(c, "HSET");
  notify(c, "hset");
  return answer_number(c, 1);
}

int hget(const call& c) {
  return read_only<stored_hash>(c, "HGET", [&](api::context* to, const open_key& key) {
    reply_text_or_null(to, field_of(key, c[2]));
  });
}

int hmget(const call& c) {
  return read_only<stored_hash>(c, "HMGET", [&](api::context* to, const open_key& key) {
    api::ReplyWithArray(to, c.count - 2);
    for (int i = 2; i < c.count; ++i) reply_text_or_null(to, field_of(key, c[i]));
  });
}

int hexists(const call& c) {
  return read_only<stored_hash>(c, "HEXISTS", [&](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, field_of(key, c[2]).has_value());
  });
}

int hstrlen(const call& c) {
  return read_only<stored_hash>(c, "HSTRLEN", [&](api::context* to, const open_key& key) {
    const std::size_t size = field_of(key, c[2]).value_or("").size();
    api::ReplyWithLongLong(to, static_cast<long long>(size));
  });
}

enum class part : std::uint8_t { both, names, values };

int reply_all(const call& c, const char* name, part of) {
  return read_only<stored_hash>(c, name, [&](api::context* to, const open_key& key) {
    const auto all = elements_of(key);
    STELE_ASSERT(all.size() == size_of(key));
    if (of == part::both)
      api::ReplyWithMap(to, static_cast<long>(all.size()));
    else
      api::ReplyWithArray(to, static_cast<long>(all.size()));
    for (const auto& [field, value] : all) {
      if (of != part::values) reply_text(to, field);
      if (of != part::names) reply_text(to, value);
    }
  });
}

int hdel(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HDEL", true)) return api::ok;
  long long removed = 0;
  for (int i = 2; i < c.count && removed == 0; ++i) removed += field_of(key, c[i]).has_value();
  if (removed == 0) return answer_unchanged(c, key, 0);
  const auto went = change<stored_hash>(c, key, 0, [&](stored_hash& hash) {
    removed = 0;
    for (int i = 2; i < c.count; ++i) removed += static_cast<long long>(hash.content.erase(c[i]));
    STELE_ASSERT(removed != 0 && static_cast<std::uint64_t>(removed) <= hash.count);
    hash.count -= static_cast<std::uint64_t>(removed);
  });
  if (!went) return answer_error(c, went.error());
  STELE_ASSERT(*went == (size_of(key) == 0));
  replicate(c, "HDEL");
  notify_taken(c, item_kind::hash, "hdel", c.text(1), *went);
  return answer_number(c, removed);
}

int hincrby(const call& c) {
  const auto by = integer_of(c[3]);
  if (!by) return api::ReplyWithError(c.context, not_an_integer);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HINCRBY", true)) return api::ok;
  const auto before = integer_of(field_of(key, c[2]).value_or("0"));
  if (!before) return answer_refusal(c, "ERR hash value is not an integer");
  long long after = 0;
  if (__builtin_add_overflow(*before, *by, &after))
    return answer_refusal(c, "ERR increment or decrement would overflow");
  if (auto stored = set_field(c, key, c[2], std::to_string(after)); !stored)
    return answer_error(c, stored.error());
  STELE_ASSERT_WHOLE(field_of(key, c[2]) == std::to_string(after));
  replicate(c, "HINCRBY");
  notify(c, "hincrby");
  return answer_number(c, after);
}

int hincrbyfloat(const call& c) {
  const auto by = float_of(c[3]);
  if (!by) return api::ReplyWithError(c.context, not_a_float);
  if (std::isinf(*by)) return api::ReplyWithError(c.context, "ERR value is NaN or Infinity");
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::hash, "HINCRBYFLOAT", true)) return api::ok;
  const auto before = float_of(field_of(key, c[2]).value_or("0"));
  if (!before) return answer_refusal(c, "ERR hash value is not a float");
  const long double after = *before + *by;
  if (std::isnan(after) || std::isinf(after))
    return answer_refusal(c, "ERR increment would produce NaN or Infinity");
  const std::string text = text_of_float(after);
  if (auto stored = set_field(c, key, c[2], text); !stored) return answer_error(c, stored.error());
  STELE_ASSERT_WHOLE(float_of(text).has_value());  // what is stored can be added to again
  replicate_as(c, "HSET", "ssb", c.text(1), c.text(2), text.data(), text.size());
  notify(c, "hincrbyfloat");
  answer a(c);
  a.end_unit();
  return api::ReplyWithStringBuffer(a.to(), text.data(), text.size());
}

int hscan(const call& c) {
  const auto step = [](stored_item* item, std::uint64_t cursor, const element_visit& visit) {
    return as<stored_hash>(item).content.scan(
        cursor, [&](const auto& field, const auto& value) { visit(field.str(), value.str()); });
  };
  return scan(c, "HSCAN", item_kind::hash, step);
}

int hrandfield(const call& c) {
  const auto how = random_arguments_of(c, "WITHVALUES");
  if (!how) return api::ok;
  return read_only<stored_hash>(c, "HRANDFIELD", [&](api::context* to, const open_key& key) {
    const auto all = elements_of(key);
    if (how->is_single) {
      if (all.empty()) return void(api::ReplyWithNull(to));
      return reply_text(to, all[random_numbers()() % all.size()].first);
    }
    const bool nested = how->is_with_seconds && speaks_resp3(c);
    const long long count = count_of_random(all.size(), how->count);
    api::ReplyWithArray(to, static_cast<long>(count * (how->is_with_seconds && !nested ? 2 : 1)));
    for_each_random(c, all.size(), how->count, [&](auto place) {
      STELE_ASSERT(place < all.size());
      if (nested) api::ReplyWithArray(to, 2);
      reply_text(to, all[place].first);
      if (how->is_with_seconds) reply_text(to, all[place].second);
    });
  });
}

constexpr command commands[] = {
    {"hget", hget, "readonly fast", 1, 1, 1, 3, 3},
    {"hmget", hmget, "readonly fast", 1, 1, 1, 3, 0},
    {"hexists", hexists, "readonly fast", 1, 1, 1, 3, 3},
    {"hstrlen", hstrlen, "readonly fast", 1, 1, 1, 3, 3},
    {"hlen", with<reply_size<stored_hash>, literal("HLEN")>, "readonly fast", 1, 1, 1, 2, 2},
    {"hgetall", with<reply_all, literal("HGETALL"), part::both>, "readonly", 1, 1, 1, 2, 2},
    {"hkeys", with<reply_all, literal("HKEYS"), part::names>, "readonly", 1, 1, 1, 2, 2},
    {"hvals", with<reply_all, literal("HVALS"), part::values>, "readonly", 1, 1, 1, 2, 2},
    {"hscan", hscan, "readonly", 1, 1, 1, 3, 0},
    {"hrandfield", hrandfield, "readonly", 1, 1, 1, 2, 4},
    {"hset", with<put, literal("hset"), false>, "write deny-oom fast", 1, 1, 1, 4, 0},
    {"hmset", with<put, literal("hmset"), true>, "write deny-oom fast", 1, 1, 1, 4, 0},
    {"hsetnx", hsetnx, "write deny-oom fast", 1, 1, 1, 4, 4},
    {"hdel", hdel, "write fast", 1, 1, 1, 3, 0},
    {"hincrby", hincrby, "write deny-oom fast", 1, 1, 1, 4, 4},
    {"hincrbyfloat", hincrbyfloat, "write deny-oom fast", 1, 1, 1, 4, 4},
};

}  // namespace

constinit const std::span<const command> hash_commands(commands);

}  // namespace stele::redis
