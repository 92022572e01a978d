// What was found, as text and as JSON.
#pragma once

#include <foreign/foreign_explorer.h>

#include <nlohmann/json_fwd.hpp>

namespace stele::foreign {

// replay_command: how the smallest violating state is judged again.
std::string text_of(const findings& f, const trace& t, const std::string& replay_command);
nlohmann::json json_of(const findings& f, const trace& t, const std::string& replay_command);
std::string text_of(const replayed& r, const trace& t);
nlohmann::json json_of(const replayed& r, const trace& t);

}  // namespace stele::foreign
