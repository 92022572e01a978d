// What the commands have in common.
#include "commands.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace stele::redis {

open_key::open_key(const call& c, api::text* name, int mode)
    : server_(c.server),
      context_(c.context),
      name_(name),
      key_(api::OpenKey(c.context, name, mode)) {
  if (key_ == nullptr) return;
  const api::type* const type = api::ModuleTypeGetType(key_);
  const auto& known = c.server.types;
  const auto at = type == nullptr ? known.end() : std::ranges::find(known, type);
  if (at == known.end()) {
    const int of_redis = api::KeyType(key_);
    is_foreign_ = of_redis != api::empty_key;
    is_of_redis_ = of_redis >= api::string_key && of_redis <= api::sorted_set_key;
    return;
  }
  item_ = static_cast<stored_item*>(api::ModuleTypeGetValue(key_));
  kind_ = static_cast<item_kind>(at - known.begin());
  STELE_ASSERT(item_ != nullptr && kind_ >= item_kind::string && kind_ <= item_kind::sorted_set);
}

open_key::~open_key() {
  if (key_ != nullptr) api::CloseKey(key_);
  if (is_changed_) api::SignalModifiedKey(context_, name_);
}

void open_key::set(stored_item* item, item_kind kind) {
  server_.commands.note_side_effect();
  STELE_ASSERT(item != nullptr && item != item_);
  api::ModuleTypeSetValue(key_, server_.type_of(kind), item);
  item_ = item, kind_ = kind;
  is_foreign_ = false, is_changed_ = true;
}

void open_key::replace(stored_item* item) {
  STELE_ASSERT(item != nullptr && item_ != nullptr && item != item_);
  server_.commands.note_side_effect();
  void* old = nullptr;
  api::ModuleTypeReplaceValue(key_, server_.type_of(kind_), item, &old);
  server_.keys->note_unlinked(item_);
  item_ = item, is_changed_ = true;
}

void open_key::erase() {
  STELE_ASSERT(key_ != nullptr);
  server_.commands.note_side_effect();
  api::DeleteKey(key_);
  item_ = nullptr;
  is_foreign_ = false, is_changed_ = true;
}

long long open_key::expiry() const {
  if (key_ == nullptr) return 0;
  const long long when = api::GetAbsExpire(key_);
  return when == api::no_expire ? 0 : when;
}

long long open_key::idle_ms() const {
  STELE_ASSERT(key_ != nullptr);
  long long ms = 0;
  (void)api::GetLRU(key_, &ms);
  return ms;
}

long long open_key::frequency() const {
  STELE_ASSERT(key_ != nullptr);
  long long often = 0;
  (void)api::GetLFU(key_, &often);
  return often;
}

result<> open_key::set_expiry(long long when) {
  STELE_ASSERT(item_ != nullptr && key_ != nullptr);
  STELE_ASSERT(!is_placeholder(item_));
  api::SetAbsExpire(key_, when == 0 ? api::no_expire : when);
  is_changed_ = true;
  return server_.keys->set_expiry(item_, when);
}

std::string text_of_reply(api::reply* of) {
  std::size_t size = 0;
  const char* const at = api::CallReplyStringPtr(of, &size);
  return at == nullptr ? std::string() : std::string(at, size);
}

command_info::command_info(const call& c, const std::string& name)
    : told_(call_server(c, "COMMAND", "cc", "INFO", name.c_str())) {
  if (told_ == nullptr || api::CallReplyType(told_) != api::reply_array) return;
  api::reply* const first = api::CallReplyArrayElement(told_, 0);
  if (first != nullptr && api::CallReplyType(first) == api::reply_array) one_ = first;
}

command_info::~command_info() {
  if (told_ != nullptr) api::FreeCallReply(told_);
}

long long command_info::arity() const {
  return one_ == nullptr ? 0 : api::CallReplyInteger(api::CallReplyArrayElement(one_, 1));
}

bool command_info::has_subcommands() const {
  constexpr std::size_t place = 9;
  return one_ != nullptr && api::CallReplyLength(one_) > place &&
         api::CallReplyLength(api::CallReplyArrayElement(one_, place)) != 0;
}

bool command_info::is_for_scripts() const {
  api::reply* const flags = one_ == nullptr ? nullptr : api::CallReplyArrayElement(one_, 2);
  const std::size_t count = flags == nullptr ? 0 : api::CallReplyLength(flags);
  for (std::size_t i = 0; i < count; ++i)
    if (text_of_reply(api::CallReplyArrayElement(flags, i)) == "noscript") return false;
  return true;
}

std::string text_setting(const call& c, const char* name) {
  std::string value;
  api::reply* const reply = call_server(c, "CONFIG", "cc", "GET", name);
  if (reply == nullptr) return value;
  if (api::CallReplyType(reply) == api::reply_array && api::CallReplyLength(reply) == 2)
    value = text_of_reply(api::CallReplyArrayElement(reply, 1));
  api::FreeCallReply(reply);
  return value;
}

namespace {

// How many elements the answer to a command of two words has; and its first, if it is a text.
std::pair<std::size_t, std::string> list_reply(const call& c, const char* first,
                                               const char* second) {
  api::reply* const reply = call_server(c, first, "c", second);
  if (reply == nullptr) return {0, {}};
  std::size_t length = 0;
  std::string text;
  if (api::CallReplyType(reply) == api::reply_array) {
    length = api::CallReplyLength(reply);
    api::reply* const one = length == 0 ? nullptr : api::CallReplyArrayElement(reply, 0);
    if (one != nullptr && api::CallReplyType(one) == api::reply_string) text = text_of_reply(one);
  }
  api::FreeCallReply(reply);
  return {length, std::move(text)};
}

}  // namespace

bool all_may_all(const call& c) {
  rights_cache& rights = c.server.rights;
  if (!rights.is_known()) {
    const auto [users, line] = list_reply(c, "ACL", "LIST");
    rights.set(users == 1 && line.find(" ~* ") != line.npos && line.ends_with(" +@all") &&
               list_reply(c, "MODULE", "LIST").first == 1);
  }
  return rights.all_may_all();
}

calling_user::calling_user(const call& c) {
  const bool in_script = (api::GetContextFlags(c.context) & api::in_script) != 0;
  if (in_script && !c.server.script) return;  // debugged: is_allowed() in module.cc
  api::text* const name = in_script ? c.server.script->user : caller_of(c);
  if (name == nullptr) return;
  user_ = api::GetModuleUserFromUserName(name);
  if (!in_script) api::FreeString(nullptr, name);
}

calling_user::calling_user(api::text* name) : user_(api::GetModuleUserFromUserName(name)) {}

calling_user::~calling_user() {
  if (user_ != nullptr) api::FreeModuleUser(user_);
}

bool calling_user::may(api::text* key, int access) const {
  return user_ == nullptr || api::ACLCheckKeyPermissions(user_, key, access) == api::ok;
}

bool calling_user::may_run(api::text** arguments, int count) const {
  return user_ == nullptr || api::ACLCheckCommandPermissions(user_, arguments, count) == api::ok;
}

std::string no_permission(std::string_view command) {
  return "NOPERM this user has no permissions to run the '" + std::string(command) +
         "' command or to access one of its keys";
}

void enter(const call& c) {
  constexpr int goes_on = api::in_multi | api::in_script;
  if (!c.server.keys->in_unit() || (api::GetContextFlags(c.context) & goes_on) != 0) return;
  must(c.server.keys->end_unit(true));
  STELE_ASSERT(c.server.keys->all_rest_on() == 0);
}

api::reply* call_redis(const call& c, const char* name, const char* format) {
  c.server.commands.note_side_effect();
  return call_server(c, name, format, c.arguments + 1, static_cast<std::size_t>(c.count - 1));
}

int forward_reply(api::context* to, api::reply* reply) {
  if (reply == nullptr)
    return api::ReplyWithError(to, "ERR the command cannot be called by a module");
  api::ReplyWithCallReply(to, reply);
  api::FreeCallReply(reply);
  return api::ok;
}

int delegate(const call& c, const char* name, bool changes) {
  return forward_reply(c.context, call_redis(c, name, changes ? "0!v" : "0v"));
}

int delegate_in_unit(const call& c, const char* name) {
  api::reply* const reply = call_redis(c, name, "0!v");
  answer a(c);
  a.end_unit();
  return forward_reply(a.to(), reply);
}

bool is_other_kind(const call& c, const open_key& key, item_kind wanted, const char* name,
                   bool changes) {
  if (key.is_of_redis()) return delegate(c, name, changes), true;
  return is_wrong_kind(c, key, wanted);
}

bool is_wrong_kind(const call& c, const open_key& key, item_kind wanted) {
  const bool wrong = key.exists() && !key.is(wanted);
  if (wrong) answer_refusal(c, wrong_type);
  return wrong;
}

int place_of_destination(const call& c, std::string_view name) {
  struct option {
    std::string_view word;
    int words;  // that follow it
  };
  struct form {
    std::string_view name;
    int first;  // option
    std::span<const option> options;
  };
  static constexpr option of_sort[] = {{"STORE", 1}, {"BY", 1}, {"GET", 1}, {"LIMIT", 2}};
  static constexpr option of_places[] = {{"STORE", 1}, {"STOREDIST", 1}, {"COUNT", 1}};
  static constexpr form forms[] = {
      {"SORT", 2, of_sort}, {"GEORADIUS", 6, of_places}, {"GEORADIUSBYMEMBER", 5, of_places}};
  const auto* const known =
      std::ranges::find_if(forms, [&](const form& f) { return equal_ignoring_case(f.name, name); });
  if (known == std::end(forms)) return 0;
  int place = 0;
  for (int i = known->first; i < c.count; ++i)
    for (const auto& [word, words] : known->options) {
      if (!equal_ignoring_case(c[i], word) || i + words >= c.count) continue;
      if (word.starts_with("STORE")) place = i + 1;
      i += words;
      break;
    }
  return place;
}

std::string value_of(const open_key& key) {
  STELE_ASSERT(key.text() != nullptr);
  return key.read([&] { return key.text()->value.str(); }).value_or("");
}

int answer_refusal(const call& c, const char* why) {
  answer a(c);
  a.rests_on_its_keys();
  return api::ReplyWithError(a.to(), why);
}

int answer_number(const call& c, long long number) {
  answer a(c);
  a.end_unit();
  return api::ReplyWithLongLong(a.to(), number);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

namespace {

// Whether the class [...] at the begin of the pattern has the byte; takes the class away.
bool take_class(std::string_view& pattern, unsigned char byte) {
  STELE_ASSERT(pattern.starts_with('['));
  pattern.remove_prefix(1);
  const bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
    auto low = static_cast<unsigned char>(pattern.front()), high = low;
    if (pattern.size() > 2 && pattern[1] == '-') {
      high = static_cast<unsigned char>(pattern[2]);
      pattern.remove_prefix(2);
    }
    if (low > high) std::swap(low, high);
    STELE_ASSERT(!pattern.empty());
    found |= low <= byte && byte <= high;
    pattern.remove_prefix(1);
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != negated;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    if (pattern.front() == '*') {
      while (pattern.starts_with('*')) pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      for (std::size_t from = 0; from <= text.size(); ++from)
        if (matches(pattern, text.substr(from))) return true;
      return false;
    }
    if (text.empty()) return false;
    const auto byte = static_cast<unsigned char>(text.front());
    if (pattern.front() == '[') {
      if (!take_class(pattern, byte)) return false;
    } else {
      const bool any = pattern.front() == '?';
      if (pattern.front() == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
      if (!any && pattern.front() != text.front()) return false;
      pattern.remove_prefix(1);
    }
    text.remove_prefix(1);
  }
  return text.empty();
}

}  // namespace stele::redis
