// What the commands share: keys, arguments, errors, calls of Redis' own commands.
#pragma once

#include "answers.h"
#include "numbers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace stele::redis {

inline std::string_view view(const api::text* t) {
  std::size_t size = 0;
  const char* const at = api::StringPtrLen(t, &size);
  return {at, size};
}

// A string of the server that the module has created.
class own_text {
 public:
  explicit own_text(std::string_view bytes)
      : text_(api::CreateString(nullptr, bytes.data(), bytes.size())) {}
  ~own_text() { api::FreeString(nullptr, text_); }
  own_text(const own_text&) = delete;
  own_text& operator=(const own_text&) = delete;
  api::text* get() const noexcept { return text_; }

 private:
  api::text* text_;
};

inline constexpr const char* wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline const char* syntax_error = "ERR syntax error";  // load() may name newer options
inline constexpr const char* not_an_integer = "ERR value is not an integer or out of range";
inline constexpr const char* not_a_float = "ERR value is not a valid float";
inline constexpr const char* too_long =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr std::size_t longest_string = std::size_t{512} << 20;

// One command of a client, or an event of the server, which has no arguments.
struct call {
  redis::server& server;
  api::context* context;
  api::text** arguments;
  int count;

  // The number of arguments has been checked before.
  std::string_view operator[](int i) const {
    STELE_ASSERT(i >= 0 && i < count);
    return view(arguments[i]);
  }
  api::text* text(int i) const {
    STELE_ASSERT(i >= 0 && i < count);
    return arguments[i];
  }
};

// An open key of Redis' keyspace. Expired keys do not exist.
class open_key {
 public:
  open_key(const call& c, api::text* name, int mode);
  ~open_key();
  open_key(const open_key&) = delete;
  open_key& operator=(const open_key&) = delete;

  api::text* name() const noexcept { return name_; }
  // In the unit, or in a transaction of its own.
  template <class Body>
  auto read(Body&& body) const {
    return server_.keys->read(std::forward<Body>(body));
  }
  // Of a type that stays Redis' own.
  bool is_foreign() const noexcept { return is_foreign_; }
  // Of a native type that the pool has too.
  bool is_of_redis() const noexcept { return is_of_redis_; }
  bool exists() const noexcept { return item_ != nullptr || is_foreign_; }
  stored_item* item() const noexcept { return item_; }
  // Of the item.
  item_kind kind() const noexcept { return kind_; }
  bool is(item_kind kind) const noexcept { return item_ != nullptr && kind_ == kind; }
  // Null, unless the key is of this kind.
  template <class Stored>
  Stored* as() const noexcept {
    return is(Stored::kind) ? &redis::as<Stored>(item_) : nullptr;
  }
  stored_text* text() const noexcept { return as<stored_text>(); }
  stored_hash* hash() const noexcept { return as<stored_hash>(); }

  // Replaces the value in Redis' keyspace, after the change in the pool.
  void set(stored_item* item, item_kind kind);
  // Points the key to a copy of its item.
  void replace(stored_item* item);
  void erase();
  // The item has changed in place: SignalModifiedKey follows.
  void note_changed() noexcept { is_changed_ = true; }
  // ms since 1970; 0: never.
  long long expiry() const;
  // What the server knows of the key's use, by its policy.
  long long idle_ms() const;
  long long frequency() const;
  // Sets it in Redis and, if it differs from the item's, in the unit. 0: never.
  result<> set_expiry(long long when);

 private:
  redis::server& server_;
  api::context* const context_;
  api::text* const name_;
  api::key* key_;
  stored_item* item_ = nullptr;
  item_kind kind_ = item_kind::string;
  bool is_foreign_ = false, is_of_redis_ = false, is_changed_ = false;
};

// Calls one of Redis' own commands, without a check of rights. `format`: as of api::Call.
template <class... Words>
api::reply* call_server(const call& c, const char* command, const char* format, Words... words) {
  const filter_bypass::scope bypass(c.server.bypass);
  return api::Call(c.context, command, format, words...);
}

// What COMMAND INFO answers about a command, by its name or as container|subcommand.
class command_info {
 public:
  command_info(const call& c, const std::string& name);
  ~command_info();
  command_info(const command_info&) = delete;
  command_info& operator=(const command_info&) = delete;

  bool is_there() const noexcept { return one_ != nullptr; }
  // The number of arguments with the name: exactly this many, or, if negative, at least. 0: there
  // is no such command.
  long long arity() const;
  bool has_subcommands() const;
  bool is_for_scripts() const;

 private:
  api::reply* told_ = nullptr;
  api::reply* one_ = nullptr;
};
inline bool takes(long long arity, int count) noexcept {
  return arity > 0 ? count == arity : arity != 0 && count >= -arity;
}

// A setting of the server; empty: there is none of this name.
std::string text_setting(const call& c, const char* name);
std::string text_of_reply(api::reply* of);

// Every command begins with it: commits the unit that an EXEC has left open.
void enter(const call& c);
// Has Redis execute its own command, and forwards the reply.
int delegate(const call& c, const char* name, bool changes);
// The same for a command that may change items.
int delegate_in_unit(const call& c, const char* name);

// Calls Redis' own command of this name with the arguments. Null: a module may not call it.
api::reply* call_redis(const call& c, const char* name, const char* format);
// Answers the reply, and frees it.
int forward_reply(api::context* to, api::reply* reply);

// A name as an argument of a template.
template <std::size_t Size>
struct literal {
  consteval literal(const char (&from)[Size]) { std::copy_n(from, Size, text); }
  constexpr operator const char*() const noexcept { return text; }
  char text[Size];
};
// A command that is `Function` with these arguments.
template <auto Function, auto... Arguments>
int with(const call& c) {
  return Function(c, Arguments...);
}

// If the key is of another kind than `wanted`, Redis' own command or WRONGTYPE answers. True: it
// did.
bool is_other_kind(const call& c, const open_key& key, item_kind wanted, const char* name,
                   bool changes);
// The same for a command that Redis cannot execute on a native value: always WRONGTYPE.
bool is_wrong_kind(const call& c, const open_key& key, item_kind wanted);
// Of a key that has a string.
std::string value_of(const open_key& key);
// Answers an error that rests on the command's keys.
int answer_refusal(const call& c, const char* why);
// The end of a command that has changed something.
int answer_number(const call& c, long long number);

bool equal_ignoring_case(std::string_view a, std::string_view b);
bool matches(std::string_view pattern, std::string_view text);

// The name of the calling user; null: the server itself, a master, or another module.
inline api::text* caller_of(const call& c) {
  return api::GetClientUserNameById(c.context, api::GetClientId(c.context));
}

// The user who calls the command, or the script that calls it.
class calling_user {
 public:
  explicit calling_user(const call& c);
  explicit calling_user(api::text* name);
  ~calling_user();
  calling_user(const calling_user&) = delete;
  calling_user& operator=(const calling_user&) = delete;

  // `access`: of api's key_... bits.
  bool may(api::text* key, int access) const;
  bool may_run(api::text** arguments, int count) const;

 private:
  api::user* user_ = nullptr;  // null: may do everything
};

// Whether no rights need a check: the only user is `default`, who may do everything, and no other
// module is loaded, which could have users. False for ever once ACL or MODULE may have changed
// that: the filter does not see when an EXEC runs them.
bool all_may_all(const call& c);
// The error of a command that the user may not run.
std::string no_permission(std::string_view command);

inline constexpr const char* prefix = "stele.";  // of the module's commands

// Sends a command to replicas and the AOF: under Redis' name, or under the module's if there is an
// AOF, which Redis loads without filters. `format`: as of api::Replicate.
template <class... Words>
void replicate_as(const call& c, const std::string& name, const char* format, Words... words) {
  const bool has_aof = (api::GetContextFlags(c.context) & api::has_aof) != 0;
  const std::string full_name = has_aof ? prefix + name : name;
  api::Replicate(c.context, full_name.c_str(), format, words...);
}
// The same with the arguments.
inline void replicate(const call& c, const char* name) {
  STELE_ASSERT(c.count != 0);
  replicate_as(c, name, "v", c.arguments + 1, static_cast<std::size_t>(c.count - 1));
}

// The place of the destination key of a command with STORE options; 0: none. The last STORE counts.
// Redis' own search finds the first (GEORADIUS), or takes the argument of another option for STORE
// (SORT).
int place_of_destination(const call& c, std::string_view name);
// Calls each(place) for the arguments of a command of this name that are keys.
template <class Each>
void for_each_key(const call& c, const char* name, Each&& each) {
  STELE_ASSERT(c.count != 0);
  const own_text own_name(name);
  std::vector<api::text*> arguments(c.arguments, c.arguments + c.count);
  arguments[0] = own_name.get();
  int count = 0;
  int* const places = api::GetCommandKeys(c.context, arguments.data(), c.count, &count);
  const int destination = place_of_destination(c, name);
  bool has_destination = destination == 0;
  for (int i = 0; i < count; ++i) {
    each(places[i]);
    has_destination |= places[i] == destination;
  }
  STELE_ASSERT(destination < c.count);
  if (!has_destination) each(destination);
  if (places != nullptr) api::Free(places);
}

struct command {
  const char* name;  // of Redis
  int (*run)(const call&);
  const char* flags;
  int first_key, last_key, key_step;
  int least, most;  // arguments with the name; most 0: any number
  // Redis' own does as well, unless commits are durable later than they return.
  bool only_where_commits_wait = false;
};
extern const std::span<const command> string_commands;
extern const std::span<const command> hash_commands;
extern const std::span<const command> list_commands;
extern const std::span<const command> set_commands;
extern const std::span<const command> sorted_set_commands;
extern const std::span<const command> sorted_set_algebra_commands;
extern const std::span<const command> sort_commands;
extern const std::span<const command> native_commands;
extern const std::span<const command> generic_commands;

// Registers the module types. False: the server does not accept one.
bool register_types(api::context* of);
// Whether the value was loaded from a file older than the pool.
bool is_placeholder(const stored_item* item) noexcept;
// The approximate size of the item in the pool, in bytes.
std::size_t memory_of(keys& all, stored_item* item);

}  // namespace stele::redis
