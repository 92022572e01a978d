// COMMAND lists the name, flags and categories of each command.
#include "newer_server.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "boundary.h"

namespace stele::redis {

namespace {

constexpr const char* refusing = "stele.refused";

bool has(api::reply* words, std::string_view word) {
  for (std::size_t i = 0; i < api::CallReplyLength(words); ++i)
    if (text_of_reply(api::CallReplyArrayElement(words, i)) == word) return true;
  return false;
}

// Whether an unknown command with these flags and categories reads or writes values of types that
// the pool has. Streams and types of other modules are Redis' own. Commands on keys of any type
// (MIGRATE, a renamed DEL) are left to Redis, which reports their changes as events.
bool is_of_the_pool(api::reply* flags, api::reply* categories) {
  constexpr const char* kinds[] = {"@string", "@hash",      "@list",        "@set",
                                   "@bitmap", "@sortedset", "@hyperloglog", "@geo"};
  if (has(flags, "module") || has(categories, "@stream")) return false;
  if (std::ranges::any_of(kinds, [&](const char* kind) { return has(categories, kind); }))
    return has(flags, "write") || has(flags, "readonly");
  return has(flags, "write") && !has(categories, "@keyspace");
}

// The value of a line `field:value` of INFO; empty: there is none.
std::string_view value_in(std::string_view info, std::string_view field) {
  const std::size_t at = info.find(std::string("\n").append(field).append(":"));
  if (at == info.npos) return {};
  info.remove_prefix(at + field.size() + 2);
  return info.substr(0, info.find_first_of("\r\n"));
}

// Name and version of the server; notes whether it is newer.
std::string name_server(const call& c) {
  api::reply* const reply = call_server(c, "INFO", "c", "server");
  const std::string info = reply == nullptr ? std::string() : text_of_reply(reply);
  if (reply != nullptr) api::FreeCallReply(reply);
  const std::string_view version = value_in(info, "redis_version");
  c.server.difference.is_newer = !version.starts_with("7.0.");
  const std::string_view valkey = value_in(info, "valkey_version");
  return valkey.empty() ? "Redis " + std::string(version) : "Valkey " + std::string(valkey);
}

int answer_refused(api::context* context, api::text** arguments, int count) {
  std::string name(count > 1 ? view(arguments[1]) : std::string_view());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  const error why{errc::unsupported,
                  name + " is refused: the module knows the commands of " + known_server +
                      ", and what newer ones write would not be in the pool; use other commands, "
                      "or a newer module"};
  if ((api::GetContextFlags(context) & api::is_replicated) != 0) must(std::unexpected(why));
  return api::ReplyWithError(context, ("ERR " + why.message).c_str());
}

}  // namespace

bool compare_commands(const call& c, bool (*is_known)(std::string_view name)) {
  const std::string server = name_server(c);
  std::string refused, renamed;
  api::reply* const reply = call_server(c, "COMMAND", "");
  for (std::size_t i = 0; reply != nullptr && i < api::CallReplyLength(reply); ++i) {
    api::reply* const one = api::CallReplyArrayElement(reply, i);
    if (api::CallReplyLength(one) < 7) continue;
    const std::string name = text_of_reply(api::CallReplyArrayElement(one, 0));
    api::reply* const flags = api::CallReplyArrayElement(one, 2);
    if (!is_of_the_pool(flags, api::CallReplyArrayElement(one, 6))) continue;
    if (!is_known(name)) {
      c.server.difference.refused.insert(name);
      refused += (refused.empty() ? "" : ", ") + name;
    } else if (has(flags, "write") && !command_info(c, name).is_there()) {
      // COMMAND lists it under its own name in any case.
      renamed += (renamed.empty() ? "" : ", ") + name;
    }
  }
  if (reply != nullptr) api::FreeCallReply(reply);
  if (!renamed.empty())
    return api::Log(c.context, "warning",
                    "stele: the setting rename-command gives other names to %s, under which they "
                    "would write values that are not in the pool; give them no name (\"\"), or use "
                    "ACL rules",
                    renamed.c_str()),
           false;
  if (c.server.difference.is_newer || !refused.empty())
    api::Log(
        c.context, "warning",
        "stele: this server is %s; the module knows the commands of %s. Options that are newer "
        "are refused, and these commands: %s",
        server.c_str(), known_server, refused.empty() ? "none" : refused.c_str());
  return api::CreateCommand(c.context, refusing, bounded<answer_refused>, "allow-stale", 0, 0, 0) ==
         api::ok;
}

bool is_refused(const server& in, std::string_view name) {
  return !in.difference.refused.empty() && in.difference.refused.contains(std::string(name));
}

void refuse(api::filter_context* of) {
  api::CommandFilterArgInsert(of, 0, api::CreateString(nullptr, refusing, std::strlen(refusing)));
}

const char* hint_of_newer_option(const server& in) noexcept {
  return in.difference.is_newer ? ", or one that is newer than the module, which knows Redis 7.0"
                                : "";
}

}  // namespace stele::redis
