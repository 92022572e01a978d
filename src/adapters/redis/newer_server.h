// A server newer than the one whose commands the module knows. Its new commands would make values
// of Redis' own, which the pool does not have, so they are refused by name, as options are.
#pragma once

#include "commands.h"

namespace stele::redis {

inline constexpr const char* known_server = "Redis 7.0";  // whose commands these are

// At load, before the module has made its commands: compares the server's commands with `is_known`,
// and makes the command that refuses. What it finds is in the log. False: the module must not load.
bool compare_commands(const call& c, bool (*is_known)(std::string_view name));
// Whether a command of this name, in lower case, is refused.
bool is_refused(const server& in, std::string_view name);
// Makes the filtered command the one that refuses.
void refuse(api::filter_context* of);
// What to add to the error of an option that may be newer than `known_server`; else empty.
const char* hint_of_newer_option(const server& in) noexcept;

}  // namespace stele::redis
