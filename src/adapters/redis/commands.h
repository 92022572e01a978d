// What the commands have in common: keys, arguments, answers to wrong ones.
#pragma once

#include "answers.h"

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
inline constexpr const char* syntax_error = "ERR syntax error";
inline constexpr const char* not_an_integer = "ERR value is not an integer or out of range";
inline constexpr const char* not_a_float = "ERR value is not a valid float";
inline constexpr const char* too_long =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr std::size_t longest_string = std::size_t{512} << 20;

// Arguments of one command.
struct call {
  api::context* context;
  api::text** arguments;
  int count;

  std::string_view operator[](int i) const { return view(arguments[i]); }
  api::text* text(int i) const { return arguments[i]; }
};

// A key of Redis' keyspace, open for the time of a command. Expired keys are not there.
class open_key {
 public:
  open_key(const call& c, api::text* name, int mode)
      : context_(c.context), name_(name), key_(api::OpenKey(c.context, name, mode)) {
    if (key_ == nullptr) return;
    const api::type* const t = api::ModuleTypeGetType(key_);
    if (t != nullptr && (t == here().text_type || t == here().hash_type))
      item_ = static_cast<stored_item*>(api::ModuleTypeGetValue(key_)),
      is_text_ = t == here().text_type;
    else
      is_foreign_ = api::KeyType(key_) != api::empty_key;
  }
  ~open_key() {
    if (key_ != nullptr) api::CloseKey(key_);
  }
  open_key(const open_key&) = delete;
  open_key& operator=(const open_key&) = delete;

  api::text* name() const noexcept { return name_; }
  // Of a type that stays Redis' own.
  bool is_foreign() const noexcept { return is_foreign_; }
  bool exists() const noexcept { return item_ != nullptr || is_foreign_; }
  stored_text* text() const noexcept {
    return item_ != nullptr && is_text_ ? &text_of(item_) : nullptr;
  }
  stored_hash* hash() const noexcept {
    return item_ != nullptr && !is_text_ ? &hash_of(item_) : nullptr;
  }
  stored_item* item() const noexcept { return item_; }

  // The key gets this value, in the place of what it had. In Redis' keyspace; after the change.
  void set(stored_item* item) {
    is_text_ = kind_of(item) == item_kind::string;
    api::ModuleTypeSetValue(key_, is_text_ ? here().text_type : here().hash_type, item);
    item_ = item, is_foreign_ = false;
  }
  // The same value in another item.
  void replace(stored_item* item);
  void erase() {
    api::DeleteKey(key_);
    item_ = nullptr, is_foreign_ = false;
  }
  long long expiry() const {
    const long long when = api::GetAbsExpire(key_);
    return when == api::no_expire ? 0 : when;
  }
  // Of Redis and, unless `when` is what the item has, in the unit. 0: never.
  result<> set_expiry(long long when);

 private:
  api::context* const context_;
  api::text* const name_;
  api::key* key_;
  stored_item* item_ = nullptr;
  bool is_text_ = false, is_foreign_ = false;
};

// Every command begins with it: commits what an EXEC before has left.
void enter(const call& c);
// Hands the command, under Redis' own name, to Redis, and answers what that answers.
int delegate(const call& c, const char* name, bool changes);
// The same for one that may change what the pool has.
int delegate_in_unit(const call& c, const char* name);

// Answers for a key that is of another kind than the command of this name is for. True: answered.
bool is_other_kind(const call& c, const open_key& key, item_kind wanted, const char* name,
                   bool changes);
std::string value_of(const stored_text& text);
// The end of a command that has changed something.
int answer_number(const call& c, long long number);

std::optional<long long> integer_of(std::string_view text);
std::optional<long double> float_of(std::string_view text);
std::string text_of_float(long double value);
bool equal_ignoring_case(std::string_view a, std::string_view b);
bool matches(std::string_view pattern, std::string_view text);

// The name of the user who calls; null: the server itself, a master, or another module.
inline api::text* caller_of(const call& c) {
  return api::GetClientUserNameById(c.context, api::GetClientId(c.context));
}

// The arguments from `first` on, to replicate as a command of this name.
void replicate(const call& c, const char* name, int first = 1);

struct command {
  const char* name;  // of Redis
  int (*run)(const call&);
  const char* flags;
  int first_key, last_key, key_step;
  int least, most;  // arguments with the name; most 0: any number
};
std::span<const command> string_commands();
std::span<const command> hash_commands();
std::span<const command> generic_commands();

// Registers the types of values. Errors: a sentence of what is missing.
bool register_types(api::context* of);
// Whether the value was loaded from a file of the server, and is not the pool's.
bool is_placeholder(const stored_item* item) noexcept;
// About what the item takes in the pool, in bytes.
std::size_t memory_of(stored_item* item);

}  // namespace stele::redis
