// What commands on hashes, lists, sets and sorted sets share.
#pragma once

#include "commands.h"

#include <random>

namespace stele::redis {

// Changes the value of a key in the unit; creates it if there is none, and changes a copy if a
// child may read it. `bytes`: about what is stored; 0: elements are only removed. A key whose value
// has no elements left is removed. Returns whether it was. Errors: full, poisoned, io.
result<bool> change_item(const call& c, open_key& key, item_kind kind, std::size_t bytes,
                         const std::function<void(stored_item*)>& body);
template <class Stored, class Body>
result<bool> change(const call& c, open_key& key, std::size_t bytes, Body&& body) {
  return change_item(c, key, Stored::kind, bytes,
                     [&](stored_item* item) { body(as<Stored>(item)); });
}
// Reads the value; a default if there is no such key.
template <class Stored, class Body>
auto look(const open_key& key, Body&& body) {
  using found = std::invoke_result_t<Body&, Stored&>;
  Stored* const value = key.as<Stored>();
  if (value == nullptr) return found{};
  return key.read([&] { return body(*value); }).value_or(found{});
}
std::uint64_t size_of(const open_key& key);

using element = std::pair<std::string, std::string>;
std::vector<element> elements_of(const open_key& key);
// Sets the key to a value of these elements, without an expiry time; without elements it is
// removed. Notifies `event`, unless it is null, or the removal. Errors: full, poisoned, io.
result<> store_all(const call& c, open_key& key, item_kind kind,
                   const std::vector<element>& elements, const char* event);
// Ends a command that sets the key of a name to what it has computed: store_all(), replicates as
// `name`, and answers how many elements there are.
int store_result(const call& c, api::text* key_name, item_kind kind,
                 const std::vector<element>& elements, const char* name, const char* event);

// --- native values: loaded from files of a plain server, or made by a command of Redis ---

// nullopt: of a type that stays Redis' own.
std::optional<item_kind> native_kind(int type) noexcept;
// The elements of a native value of this kind. Errors: unsupported, if rename-command has taken the
// command away that reads them.
result<std::vector<element>> native_elements(const call& c, api::text* key, item_kind kind);
// Makes an item of the key's value, if that is native and of a type that the pool has. Errors:
// full, poisoned, io, unsupported; the key is unchanged then.
result<> import_value(const call& c, api::text* key);
// The same for all keys, in units of some hundred. Returns how many.
result<std::uint64_t> import_all(const call& c);
// Removes native values of types that the pool has, and placeholders. Returns how many.
std::uint64_t drop_loaded(const call& c);

void notify(const call& c, item_kind kind, const char* event, api::text* key);
// Notifies of removed elements, and of the key if it was removed.
void notify_taken(const call& c, item_kind kind, const char* event, api::text* key, bool went);

void reply_text(api::context* to, std::string_view text);
void reply_text_or_null(api::context* to, const std::optional<std::string>& text);
// Runs a command that reads a value of one kind: calls reply(where to answer, key).
template <class Stored, class Reply>
int read_only(const call& c, const char* name, Reply&& reply) {
  const open_key key(c, c.text(1), api::for_reading);
  if (is_other_kind(c, key, Stored::kind, name, false)) return api::ok;
  answer a(c);
  a.rests_on(key.item());
  reply(a.to(), key);
  return api::ok;
}
// HLEN, LLEN, SCARD, ZCARD.
template <class Stored>
int reply_size(const call& c, const char* name) {
  return read_only<Stored>(c, name, [](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, static_cast<long long>(size_of(key)));
  });
}
// Ends a command that has found nothing to change.
int answer_unchanged(const call& c, const open_key& key, long long number);
inline bool speaks_resp3(const call& c) {
  return (api::GetContextFlags(c.context) & api::speaks_resp3) != 0;
}

std::mt19937_64& random_numbers();
// How many of `size` elements a command answers that was asked for `count` random ones: different
// ones, or, of a negative count, any.
long long count_of_random(std::uint64_t size, long long count) noexcept;
// Calls each(place) for those. When the answer gets longer than the client may have it, the server
// ends the client: no more are chosen then.
void for_each_random(const call& c, std::uint64_t size, long long count,
                     const std::function<void(std::uint64_t place)>& each);
// The arguments of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER. nullopt: answered with an error.
struct random_arguments {
  long long count = 1;
  bool is_single = true, is_with_seconds = false;
};
std::optional<random_arguments> random_arguments_of(const call& c, const char* option);

// HSCAN, SSCAN, ZSCAN: `step` visits what belongs to a cursor and returns the next, 0 at the end.
inline constexpr std::uint64_t scanned_whole = 128;  // or fewer elements, as in Redis
using scan_step = std::function<std::uint64_t(stored_item* item, std::uint64_t cursor,
                                              const element_visit& visit)>;
int scan(const call& c, const char* name, item_kind kind, const scan_step& step);

// --- commands that wait for a key to have something ---

// Answers, from a key that has a value of the kind.
using serve_function = void (*)(const call&, open_key&);
// Serves from the first of the keys that is there, or answers that it is of another kind. False:
// none is there, and nothing was answered.
template <class Serve>
bool serve_first(const call& c, item_kind kind, int first, int count, Serve&& serve) {
  for (int i = first; i < first + count; ++i) {
    open_key key(c, c.text(i), api::for_reading | api::for_writing);
    if (!key.exists()) continue;
    if (!is_wrong_kind(c, key, kind)) serve(c, key);
    return true;
  }
  return false;
}
// What LMPOP and ZMPOP take, from the number of keys on: keys, one of two words for an end, COUNT.
struct pop_arguments {
  int first = 0, count = 0;  // of the keys
  bool at_second = false;    // the second of the words was given
  std::uint64_t most = 1;
};
// Null, or what is wrong.
const char* read_pop_arguments(const call& c, int at, const char* one, const char* other,
                               pop_arguments& to);
// What SINTERCARD and ZINTERCARD take behind their keys, from the argument `i` on: up to what they
// count. Null, or what is wrong.
const char* read_limit(const call& c, int i, std::uint64_t& most);
// A command that takes the first of something: how many; nullopt: answered with an error.
std::optional<std::uint64_t> pop_count_of(const call& c);

// Serves the client, or lets it wait for keys of this kind. `timeout`: in seconds, 0 for ever.
struct wait_arguments {
  item_kind kind;
  int first_key, keys;
  std::string_view timeout;
  bool null_is_array = true;  // of a client that may not wait
};
int serve_or_wait(const call& c, serve_function serve, const wait_arguments& how);

// LMPOP, ZMPOP, and BLMPOP, BZMPOP: `Pop` answers, from a key of the kind.
using pop_function = void (*)(const call&, open_key&, const pop_arguments&);
template <item_kind Kind, literal One, literal Other, pop_function Pop>
int pop_from_several(const call& c) {
  pop_arguments how;
  if (const char* const wrong = read_pop_arguments(c, 1, One.text, Other.text, how))
    return api::ReplyWithError(c.context, wrong);
  const auto serve = [&](const call& of, open_key& key) { Pop(of, key, how); };
  if (serve_first(c, Kind, how.first, how.count, serve)) return api::ok;
  answer a(c);
  a.rests_on(nullptr);
  return api::ReplyWithNullArray(a.to());
}
template <item_kind Kind, literal One, literal Other, pop_function Pop>
int wait_for_several(const call& c) {
  pop_arguments how;
  if (const char* const wrong = read_pop_arguments(c, 2, One.text, Other.text, how))
    return api::ReplyWithError(c.context, wrong);
  const auto serve = [](const call& of, open_key& key) {
    pop_arguments again;
    (void)read_pop_arguments(of, 2, One.text, Other.text, again);
    Pop(of, key, again);
  };
  return serve_or_wait(c, serve, {Kind, how.first, how.count, c[1]});
}

}  // namespace stele::redis
