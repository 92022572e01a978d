// Commands on keys of any type. Redis carries them out; what that changes in the pool is one unit.
#include "commands.h"

#include <algorithm>
#include <utility>

namespace stele::redis {

namespace {

template <std::size_t Size>
struct literal {
  consteval literal(const char (&from)[Size]) { std::copy_n(from, Size, text); }
  char text[Size];
};

template <literal Name>
int in_unit(const call& c) {
  return delegate_in_unit(c, Name.text);
}

template <literal Name>
int script(const call& c) {
  here().script_user = caller_of(c);
  const int done = delegate_in_unit(c, Name.text);
  if (here().script_user != nullptr)
    api::FreeString(nullptr, std::exchange(here().script_user, nullptr));
  return done;
}

int type(const call& c) {
  const open_key key(c, c.text(1), api::for_reading | api::without_touch);
  if (key.is_foreign()) return delegate(c, "TYPE", false);
  answer a(c.context);
  a.rests_on(key.item());
  const char* const name = key.text() != nullptr   ? "string"
                           : key.hash() != nullptr ? "hash"
                                                   : "none";
  return api::ReplyWithSimpleString(a.to(), name);
}

// What Redis itself would have taken for the value: programs compare these words.
const char* encoding_of(const open_key& key) {
  constexpr std::size_t longest_in_list = 64, longest_embedded = 44;
  constexpr std::uint64_t most_in_list = 128;
  if (stored_text* const text = key.text()) {
    const std::string value = text->value.str();
    return integer_of(value) ? "int" : value.size() <= longest_embedded ? "embstr" : "raw";
  }
  bool is_small = key.hash()->count <= most_in_list;
  if (is_small)
    key.hash()->fields.for_each([&](const auto& field, const auto& value) {
      is_small &= field.size() <= longest_in_list && value.size() <= longest_in_list;
    });
  return is_small ? "listpack" : "hashtable";
}

int object(const call& c) {
  if (c.count != 3 || !equal_ignoring_case(c[1], "ENCODING")) return delegate(c, "OBJECT", false);
  const open_key key(c, c.text(2), api::for_reading | api::without_touch);
  if (key.item() == nullptr) return delegate(c, "OBJECT", false);
  answer a(c.context);
  a.rests_on(key.item());
  const std::string name = here().keys->read([&] { return encoding_of(key); }).value_or("raw");
  return api::ReplyWithStringBuffer(a.to(), name.data(), name.size());
}

constexpr command commands[] = {
    {"object", object, "readonly", 2, 2, 1, 2, 0},
    {"type", type, "readonly fast", 1, 1, 1, 2, 2},
    {"del", in_unit<"DEL">, "write", 1, -1, 1, 2, 0},
    {"unlink", in_unit<"UNLINK">, "write fast", 1, -1, 1, 2, 0},
    {"rename", in_unit<"RENAME">, "write", 1, 2, 1, 3, 3},
    {"renamenx", in_unit<"RENAMENX">, "write fast", 1, 2, 1, 3, 3},
    {"copy", in_unit<"COPY">, "write deny-oom", 1, 2, 1, 3, 0},
    {"move", in_unit<"MOVE">, "write fast", 1, 1, 1, 3, 3},
    {"expire", in_unit<"EXPIRE">, "write fast", 1, 1, 1, 3, 0},
    {"pexpire", in_unit<"PEXPIRE">, "write fast", 1, 1, 1, 3, 0},
    {"expireat", in_unit<"EXPIREAT">, "write fast", 1, 1, 1, 3, 0},
    {"pexpireat", in_unit<"PEXPIREAT">, "write fast", 1, 1, 1, 3, 0},
    {"persist", in_unit<"PERSIST">, "write fast", 1, 1, 1, 2, 2},
    {"restore", in_unit<"RESTORE">, "write deny-oom", 1, 1, 1, 4, 0},
    {"eval", script<"EVAL">, "may-replicate allow-stale no-mandatory-keys", 0, 0, 0, 3, 0},
    {"evalsha", script<"EVALSHA">, "may-replicate allow-stale no-mandatory-keys", 0, 0, 0, 3, 0},
    {"fcall", script<"FCALL">, "may-replicate allow-stale no-mandatory-keys", 0, 0, 0, 3, 0},
    {"swapdb", in_unit<"SWAPDB">, "write fast", 0, 0, 0, 3, 3},
    {"flushdb", in_unit<"FLUSHDB">, "write", 0, 0, 0, 1, 2},
    {"flushall", in_unit<"FLUSHALL">, "write", 0, 0, 0, 1, 2},
};

}  // namespace

std::span<const command> generic_commands() {
  return commands;
}

}  // namespace stele::redis
