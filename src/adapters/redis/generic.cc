// Commands on keys of any type. Redis executes them; their changes in the pool are one unit.
#include "collections.h"
#include "script_rights.h"

namespace stele::redis {

namespace {

template <literal Name>
int in_unit(const call& c) {
  return delegate_in_unit(c, Name.text);
}

// Renames the item first: when Redis has renamed the key, it is too late to refuse.
template <literal Name, bool Only_new>
int rename(const call& c) {
  {
    const open_key from(c, c.text(1), api::for_reading | api::without_touch);
    const open_key to(c, c.text(2), api::for_reading | api::without_touch);
    if (from.item() != nullptr && !(Only_new && to.exists()))
      if (auto done = c.server.keys->rename(from.item(), c[2], api::GetSelectedDb(c.context));
          !done)
        return answer_error(c, done.error());
  }
  return delegate_in_unit(c, Name.text);
}

int copy(const call& c) {
  c.server.copy_refusal.reset();
  api::reply* const reply = call_redis(c, "COPY", "0!v");
  if (c.server.copy_refusal) {
    api::FreeCallReply(reply);
    return answer_error(c, *c.server.copy_refusal);
  }
  answer a(c);
  a.end_unit();
  return forward_reply(a.to(), reply);
}

// Redis refuses a script without the flag allow-oom when memory is short. Its error for a module
// differs from that for a client; in an EXEC it does not.
bool is_refused_for_memory(const call& c, api::reply* reply) {
  constexpr std::string_view words = "OOM allow-oom flag is not set on the script";
  return reply != nullptr && api::CallReplyType(reply) == api::reply_error &&
         text_of_reply(reply).starts_with(words) &&
         (api::GetContextFlags(c.context) & api::in_multi) == 0;
}

template <literal Name>
int script(const call& c) {
  const script_caller caller(c);
  api::reply* const reply = call_redis(c, Name.text, "0!v");
  STELE_ASSERT(c.server.script && &c.server.script->caller == &c);
  answer a(c);
  a.end_unit();
  a.rests_on_script();
  if (!is_refused_for_memory(c, reply)) return forward_reply(a.to(), reply);
  api::FreeCallReply(reply);
  return api::ReplyWithError(a.to(), "OOM command not allowed when used memory > 'maxmemory'.");
}

int type(const call& c) {
  const open_key key(c, c.text(1), api::for_reading | api::without_touch);
  if (key.is_foreign()) return delegate(c, "TYPE", false);
  answer a(c);
  a.rests_on(key.item());
  constexpr const char* names[] = {"none", "string", "hash", "list", "set", "zset"};
  static_assert(std::size(names) == item_kinds + 1);
  const char* const name = names[key.exists() ? static_cast<std::size_t>(key.kind()) : 0];
  return api::ReplyWithSimpleString(a.to(), name);
}

// The value of a numeric setting.
std::uint64_t setting(const call& c, const char* name, std::uint64_t otherwise) {
  const auto value = integer_of(text_setting(c, name));
  return value && *value >= 0 ? static_cast<std::uint64_t>(*value) : otherwise;
}

// Whether Redis would encode the value as a listpack.
bool is_small(const call& c, stored_item* item, const char* most_setting,
              const char* longest_setting) {
  if (count_of(item) > setting(c, most_setting, 128)) return false;
  STELE_ASSERT(kind_of(item) == item_kind::hash || kind_of(item) == item_kind::sorted_set);
  const std::uint64_t longest = setting(c, longest_setting, 64);
  const bool values_count = kind_of(item) == item_kind::hash;
  bool all = true;
  for_each_element(item, [&](std::string_view first, std::string_view second) {
    all &= first.size() <= longest && (!values_count || second.size() <= longest);
  });
  return all;
}

// The encoding that Redis would have chosen; programs compare these names.
const char* encoding_of(const call& c, stored_item* item) {
  STELE_ASSERT(count_of(item) != 0);
  constexpr std::size_t longest_embedded = 44;
  const auto are_integers = [&] {
    bool all = true;
    for_each_element(item, [&](std::string_view first, std::string_view) {
      all &= integer_of(first).has_value();
    });
    return all;
  };
  switch (kind_of(item)) {
    case item_kind::hash:
      return is_small(c, item, "hash-max-listpack-entries", "hash-max-listpack-value")
                 ? "listpack"
                 : "hashtable";
    case item_kind::list:
      return "quicklist";
    case item_kind::set:
      return count_of(item) <= setting(c, "set-max-intset-entries", 512) && are_integers()
                 ? "intset"
                 : "hashtable";
    case item_kind::sorted_set:
      return is_small(c, item, "zset-max-listpack-entries", "zset-max-listpack-value") ? "listpack"
                                                                                       : "skiplist";
    default:
      return are_integers()                                           ? "int"
             : as<stored_text>(item).value.size() <= longest_embedded ? "embstr"
                                                                      : "raw";
  }
}

int object(const call& c) {
  if (!equal_ignoring_case(c[1], "ENCODING")) return delegate(c, "OBJECT", false);
  const open_key key(c, c.text(2), api::for_reading | api::without_touch);
  if (key.item() == nullptr) return delegate(c, "OBJECT", false);
  answer a(c);
  a.rests_on(key.item());
  const std::string name = key.read([&] { return encoding_of(c, key.item()); }).value_or("raw");
  return api::ReplyWithStringBuffer(a.to(), name.data(), name.size());
}

// Redis executes the command. The answer is held until the commits it depends on are durable.
template <literal Name, void (answer::*Rests_on)()>
int delegate_read(const call& c) {
  STELE_ASSERT(!c.server.commands.is_idle());
  answer a(c);
  (a.*Rests_on)();
  api::reply* const reply = call_redis(c, Name.text, "0v");
  return forward_reply(a.to(), reply);
}
template <literal Name>
constexpr auto reads_keys = delegate_read<Name, &answer::rests_on_its_keys>;
template <literal Name>
constexpr auto reads_all = delegate_read<Name, &answer::rests_on_all>;

// The payload may be a plain server's: a native value, which is imported.
int restore(const call& c) {
  const bool begins_unit = !c.server.keys->in_unit();
  // Asks for room before Redis replaces another value.
  if (auto room = c.server.keys->change(c[3].size() + bytes_of_item, [] {}); !room)
    return answer_error(c, room.error());
  load_state& load = c.server.load;
  load.forget_refusal();
  STELE_ASSERT(c.server.keys->in_unit());
  api::reply* reply = nullptr;
  {
    const load_state::restored payload(load, begins_unit);
    reply = call_redis(c, "RESTORE", "0v");
  }
  auto refused = load.take_refusal();
  if (reply != nullptr && api::CallReplyType(reply) != api::reply_error) {
    if (auto imported = import_value(c, c.text(1)); !imported) {
      refused = imported.error();
      open_key(c, c.text(1), api::for_reading | api::for_writing).erase();
    }
    const open_key key(c, c.text(1), api::for_reading | api::without_touch);
    if (key.exists())
      replicate_as(c, "RESTORE", "slscc", c.text(1), key.expiry(), c.text(3), "REPLACE", "ABSTTL");
    else  // its time had passed
      replicate_as(c, "DEL", "s", c.text(1));
  }
  answer a(c);
  a.end_unit();
  if (!refused || refused->code == errc::corrupt) return forward_reply(a.to(), reply);
  if (reply != nullptr) api::FreeCallReply(reply);
  if (runs_again(c, *refused)) return api::ok;
  return reply_error(a.to(), *refused);
}

// A script may not call a script.
constexpr const char* script_flags =
    "may-replicate deny-script allow-stale no-mandatory-keys getkeys-api";
constexpr const char* reading_script_flags =
    "readonly deny-script allow-stale no-mandatory-keys getkeys-api";

constexpr command commands[] = {
    {"exists", reads_keys<"EXISTS">, "readonly fast", 1, -1, 1, 2, 0, true},
    {"touch", reads_keys<"TOUCH">, "readonly fast", 1, -1, 1, 2, 0, true},
    {"ttl", reads_keys<"TTL">, "readonly fast", 1, 1, 1, 2, 2, true},
    {"pttl", reads_keys<"PTTL">, "readonly fast", 1, 1, 1, 2, 2, true},
    {"expiretime", reads_keys<"EXPIRETIME">, "readonly fast", 1, 1, 1, 2, 2, true},
    {"pexpiretime", reads_keys<"PEXPIRETIME">, "readonly fast", 1, 1, 1, 2, 2, true},
    {"dump", reads_keys<"DUMP">, "readonly", 1, 1, 1, 2, 2, true},
    {"dbsize", reads_all<"DBSIZE">, "readonly fast", 0, 0, 0, 1, 1, true},
    {"keys", reads_all<"KEYS">, "readonly", 0, 0, 0, 2, 2, true},
    {"randomkey", reads_all<"RANDOMKEY">, "readonly", 0, 0, 0, 1, 1, true},
    {"scan", reads_all<"SCAN">, "readonly", 0, 0, 0, 2, 0, true},
    {"object", object, "readonly", 2, 2, 1, 3, 3},
    {"type", type, "readonly fast", 1, 1, 1, 2, 2},
    {"del", in_unit<"DEL">, "write", 1, -1, 1, 2, 0},
    {"unlink", in_unit<"UNLINK">, "write fast", 1, -1, 1, 2, 0},
    {"rename", rename<"RENAME", false>, "write", 1, 2, 1, 3, 3},
    {"renamenx", rename<"RENAMENX", true>, "write fast", 1, 2, 1, 3, 3},
    {"copy", copy, "write deny-oom", 1, 2, 1, 3, 0},
    {"move", in_unit<"MOVE">, "write fast", 1, 1, 1, 3, 3},
    {"expire", in_unit<"EXPIRE">, "write fast", 1, 1, 1, 3, 0},
    {"pexpire", in_unit<"PEXPIRE">, "write fast", 1, 1, 1, 3, 0},
    {"expireat", in_unit<"EXPIREAT">, "write fast", 1, 1, 1, 3, 0},
    {"pexpireat", in_unit<"PEXPIREAT">, "write fast", 1, 1, 1, 3, 0},
    {"persist", in_unit<"PERSIST">, "write fast", 1, 1, 1, 2, 2},
    {"restore", restore, "write deny-oom", 1, 1, 1, 4, 0},
    {"eval", script<"EVAL">, script_flags, 0, 0, 0, 3, 0},
    {"evalsha", script<"EVALSHA">, script_flags, 0, 0, 0, 3, 0},
    {"fcall", script<"FCALL">, script_flags, 0, 0, 0, 3, 0},
    {"eval_ro", script<"EVAL_RO">, reading_script_flags, 0, 0, 0, 3, 0},
    {"evalsha_ro", script<"EVALSHA_RO">, reading_script_flags, 0, 0, 0, 3, 0},
    {"fcall_ro", script<"FCALL_RO">, reading_script_flags, 0, 0, 0, 3, 0},
    {"swapdb", in_unit<"SWAPDB">, "write fast", 0, 0, 0, 3, 3},
    {"flushdb", in_unit<"FLUSHDB">, "write", 0, 0, 0, 1, 0},
    {"flushall", in_unit<"FLUSHALL">, "write", 0, 0, 0, 1, 0},
};

}  // namespace

constinit const std::span<const command> generic_commands(commands);

}  // namespace stele::redis
