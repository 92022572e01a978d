// Loads plug-ins (sim/plugin.h), and says which parts of a machine come from them.
#pragma once

#include <sim/config.h>
#include <stele/error.h>

#include <exception>

namespace stele::sim {

// Adds the parts of a shared object, once. Returns its path without links and from the root.
// Errors, after which nothing has been added: not_found; invalid_argument, when it cannot be
// loaded, was compiled with other headers, throws, adds nothing, or adds a name that is taken.
[[nodiscard]] result<std::string> load_plugin(const std::string& path);

// A part that a machine names and a plug-in has.
struct plugged_part {
  std::string what, name;  // "scheduler", "device" or "design"
  std::string key;         // of the machine
  std::string plugin;      // its file
};
std::vector<plugged_part> plugged_parts(const machine_config& m);

error plugin_threw(const machine_config& m, const std::string& what);

// Runs the machine. What a plug-in of it throws is an error of the run, invalid_argument.
template <class Run>
auto with_plugins(const machine_config& m, Run&& run) -> decltype(run()) {
  if (m.plugins.empty()) return run();
  try {
    return run();
  } catch (const std::exception& e) {
    return std::unexpected(plugin_threw(m, e.what()));
  } catch (...) {
    return std::unexpected(plugin_threw(m, "something that is no std::exception"));
  }
}

}  // namespace stele::sim
