// Checks whether the user of a script may run what the script calls.
#include "script_rights.h"

#include <cstring>

#include "boundary.h"

namespace stele::redis {

namespace {

constexpr const char* denying = "stele.denied";

int answer_denied(api::context* context, api::text** arguments, int count) {
  const std::string name(count > 1 ? view(arguments[1]) : std::string_view());
  return api::ReplyWithError(context, no_permission(name).c_str());
}

// Whether Redis accepts the command in a script with this number of arguments. It refuses another
// number before it checks rights, whose code reads arguments that may be missing. During a busy
// script Redis also runs commands of other clients; none of these is allowed in scripts.
bool is_taken(const call& caller, const std::vector<api::text*>& arguments) {
  const int count = static_cast<int>(arguments.size());
  const std::string name(view(arguments[0]));
  const command_info known(caller, name);
  if (!takes(known.arity(), count) || !known.is_for_scripts()) return false;
  if (count < 2 || !known.has_subcommands()) return true;
  const command_info sub(caller, name + "|" + std::string(view(arguments[1])));
  return takes(sub.arity(), count) && sub.is_for_scripts();
}

}  // namespace

script_caller::script_caller(const call& c) : server_(c.server) {
  STELE_ASSERT(!server_.script);  // a script may not call a script
  server_.script.emplace(c, caller_of(c));
}

script_caller::~script_caller() {
  STELE_ASSERT(server_.script);
  api::text* const user = server_.script->user;
  server_.script.reset();
  if (user != nullptr) api::FreeString(nullptr, user);
}

bool create_denying_command(api::context* of) {
  return api::CreateCommand(of, denying, bounded<answer_denied>, "allow-stale", 0, 0, 0) == api::ok;
}

bool is_denied_in_script(const server& in, api::filter_context* of) {
  if (!in.script || in.script->user == nullptr || all_may_all(in.script->caller)) return false;
  std::vector<api::text*> arguments;
  for (int i = 0; i < api::CommandFilterArgsCount(of); ++i)
    arguments.push_back(api::CommandFilterArgGet(of, i));
  if (!is_taken(in.script->caller, arguments)) return false;
  const calling_user user(in.script->user);
  return !user.may_run(arguments.data(), static_cast<int>(arguments.size()));
}

void deny(api::filter_context* of) {
  api::CommandFilterArgInsert(of, 0, api::CreateString(nullptr, denying, std::strlen(denying)));
}

}  // namespace stele::redis
