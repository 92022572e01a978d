// Refuses commands and options of servers newer than the module. They would create native values,
// which the pool would not have.
#pragma once

#include "commands.h"

namespace stele::redis {

inline constexpr const char* known_server = "Redis 7.0";  // whose commands these are

// Called before the module creates its commands: compares the server's commands with `is_known`,
// logs the difference, and creates the command that refuses. False: the module must not load.
bool compare_commands(const call& c, bool (*is_known)(std::string_view name));
// Whether a command of this name, in lower case, is refused.
bool is_refused(const server& in, std::string_view name);
// Replaces the filtered command by the one that refuses.
void refuse(api::filter_context* of);
// What to add to the error of an option that may be newer than `known_server`; else empty.
const char* hint_of_newer_option(const server& in) noexcept;

}  // namespace stele::redis
