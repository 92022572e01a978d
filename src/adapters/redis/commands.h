// What the commands have in common: keys, arguments, answers to wrong ones.
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

// A text that the module has made.
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

  // The code asks for an argument only after the number of them has been looked at.
  std::string_view operator[](int i) const {
    STELE_ASSERT(i >= 0 && i < count);
    return view(arguments[i]);
  }
  api::text* text(int i) const {
    STELE_ASSERT(i >= 0 && i < count);
    return arguments[i];
  }
};

// A key of Redis' keyspace, open for the time of a command. Expired keys are not there.
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
  // Of a kind that the pool has too: what Redis' own commands on such a kind are for.
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

  // The key gets this value, in the place of what it had. In Redis' keyspace; after the change.
  void set(stored_item* item, item_kind kind);
  // The same value in another item.
  void replace(stored_item* item);
  void erase();
  // What the item has was changed in its place: SignalModifiedKey is due.
  void note_changed() noexcept { is_changed_ = true; }
  // ms since 1970; 0: never.
  long long expiry() const;
  // As the server notes the key's use, by its policy.
  long long idle_ms() const;
  long long frequency() const;
  // Of Redis and, unless `when` is what the item has, in the unit. 0: never.
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

// Calls one of Redis' own commands, for which nobody's rights are asked. `format`: as of api::Call.
template <class... Words>
api::reply* call_server(const call& c, const char* command, const char* format, Words... words) {
  const filter_bypass::scope bypass(c.server.bypass);
  return api::Call(c.context, command, format, words...);
}

// What COMMAND INFO tells of a command of the server, by its name or as container|subcommand.
class command_info {
 public:
  command_info(const call& c, const std::string& name);
  ~command_info();
  command_info(const command_info&) = delete;
  command_info& operator=(const command_info&) = delete;

  bool is_there() const noexcept { return one_ != nullptr; }
  // Redis' bound on the number of its arguments, the name included: exactly so many, or, below 0,
  // at least so many. 0: there is no such command.
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

// Every command begins with it: commits what an EXEC before has left.
void enter(const call& c);
// Hands the command, under Redis' own name, to Redis, and answers what that answers.
int delegate(const call& c, const char* name, bool changes);
// The same for one that may change what the pool has.
int delegate_in_unit(const call& c, const char* name);

// Calls Redis' own command of this name with the arguments. Null: a module may not call it.
api::reply* call_redis(const call& c, const char* name, const char* format);
// Answers what that answered.
int forward_reply(api::context* to, api::reply* reply);

// A name as an argument of a template.
template <std::size_t Size>
struct literal {
  consteval literal(const char (&from)[Size]) { std::copy_n(from, Size, text); }
  char text[Size];
};

// Answers for a key that is of another kind than the command of this name is for. True: answered.
bool is_other_kind(const call& c, const open_key& key, item_kind wanted, const char* name,
                   bool changes);
// The same for a command whose own code answers for all keys: of another type, an error.
bool is_wrong_kind(const call& c, const open_key& key, item_kind wanted);
// Of a key that has a string.
std::string value_of(const open_key& key);
// Refuses for what the command's keys have.
int answer_refusal(const call& c, const char* why);
// The end of a command that has changed something.
int answer_number(const call& c, long long number);

bool equal_ignoring_case(std::string_view a, std::string_view b);
bool matches(std::string_view pattern, std::string_view text);

// The name of the user who calls; null: the server itself, a master, or another module.
inline api::text* caller_of(const call& c) {
  return api::GetClientUserNameById(c.context, api::GetClientId(c.context));
}

// The user who calls, or who has called the script that does.
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

// Whether rights need not be asked: there is no user but `default`, who may do everything, and no
// other module, which could have users of its own. False for ever once ACL or MODULE may have
// changed that: within a MULTI no filter tells when they run.
bool all_may_all(const call& c);
// The error of a command that the user may not run.
std::string no_permission(std::string_view command);

inline constexpr const char* prefix = "stele.";  // of the module's commands

// Tells replicas and the AOF a command. It has Redis' name, unless there is an AOF: what is loaded
// from that passes no filter. `format`: as of api::Replicate.
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

// The place of the last STORE's key, which is the one that counts, of a command of this name that
// has such an option; 0: none. Redis' own search finds the first (GEORADIUS), or takes an option's
// word for what it is not (SORT).
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
std::span<const command> string_commands();
std::span<const command> hash_commands();
std::span<const command> list_commands();
std::span<const command> set_commands();
std::span<const command> sorted_set_commands();
std::span<const command> sorted_set_algebra_commands();
std::span<const command> sort_commands();
std::span<const command> native_commands();
std::span<const command> generic_commands();

// Registers the types of values. Errors: a sentence of what is missing.
bool register_types(api::context* of);
// Whether the value was loaded from a file of the server, and is not the pool's.
bool is_placeholder(const stored_item* item) noexcept;
// About what the item takes in the pool, in bytes.
std::size_t memory_of(keys& all, stored_item* item);

}  // namespace stele::redis
