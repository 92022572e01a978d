// Asks whether the user of a script may run what the script calls.
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

// Whether Redis takes the command in a script with so many arguments. It refuses another number
// before it asks for rights, whose code reads arguments that a wrong number leaves out. While a
// script takes long, Redis also runs commands of other clients; none of these is for scripts.
bool is_taken(const std::vector<api::text*>& arguments) {
  const int count = static_cast<int>(arguments.size());
  STELE_ASSERT(here().script_context != nullptr);
  const std::string name(view(arguments[0]));
  const told_command known(here().script_context, name);
  if (!takes(known.arity(), count) || !known.is_for_scripts()) return false;
  if (count < 2 || !known.has_subcommands()) return true;
  const told_command sub(here().script_context, name + "|" + std::string(view(arguments[1])));
  return takes(sub.arity(), count) && sub.is_for_scripts();
}

}  // namespace

script_caller::script_caller(const call& c) {
  STELE_ASSERT(here().script_context == nullptr && here().script_user == nullptr);
  here().script_user = caller_of(c);
  here().script_context = c.context;
}

script_caller::~script_caller() {
  STELE_ASSERT(here().script_context != nullptr);
  here().script_context = nullptr;
  if (here().script_user != nullptr)
    api::FreeString(nullptr, std::exchange(here().script_user, nullptr));
}

bool create_denying_command(api::context* of) {
  return api::CreateCommand(of, denying, bounded<answer_denied>, "allow-stale", 0, 0, 0) == api::ok;
}

bool is_denied_in_script(api::filter_context* of) {
  if (here().script_user == nullptr || all_may_all(here().script_context)) return false;
  std::vector<api::text*> arguments;
  for (int i = 0; i < api::CommandFilterArgsCount(of); ++i)
    arguments.push_back(api::CommandFilterArgGet(of, i));
  if (!is_taken(arguments)) return false;
  const calling_user user(here().script_user);
  return !user.may_run(arguments.data(), static_cast<int>(arguments.size()));
}

void deny(api::filter_context* of) {
  api::CommandFilterArgInsert(of, 0, api::CreateString(nullptr, denying, std::strlen(denying)));
}

}  // namespace stele::redis
