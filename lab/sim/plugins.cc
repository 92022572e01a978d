// Opens shared objects, and checks what they add before any of it is used.
#include <base/check.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sim/plugin.h>
#include <sim/plugins.h>

#include <algorithm>
#include <filesystem>

namespace stele::sim {
namespace {

constexpr const char* entry_name = "stele_sim_plugin";

struct close_library {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using library = std::unique_ptr<void, close_library>;

std::unexpected<error> refused(const std::string& file, const std::string& why) {
  return base::fail(errc::invalid_argument, fmt::format("the plug-in {} {}", file, why));
}

bool is_complete(const scheduler_kind& k) {
  return k.name != nullptr && *k.name != '\0' && k.make != nullptr;
}
bool is_complete(const device_kind& k) {
  return !k.name.empty() && k.pulses != nullptr;
}
bool is_complete(const design_kind& k) {
  return !k.name.empty() && k.make != nullptr;
}

template <class Kind>
result<> check_added(const std::string& file, const char* what, const std::vector<Kind>& added,
                     const kinds<Kind>& known) {
  for (const Kind& k : added) {
    if (!is_complete(k))
      return refused(file,
                     fmt::format("adds a {} without a name or a function; give it both", what));
    const std::string_view name = k.name;
    const auto has_its_name = [&](const Kind& other) { return name == other.name; };
    const bool twice = std::ranges::count_if(added, has_its_name) > 1;
    if (!twice && known.find(name) == nullptr) continue;
    const std::string other = twice ? file : known.plugin_of(name);
    return refused(file, fmt::format("adds the {} \"{}\", a name that {} has; give it another",
                                     what, name, other.empty() ? "the laboratory" : other));
  }
  return {};
}

result<> add_all(const std::string& file, const plugin_parts& parts) {
  if (parts.schedulers.empty() && parts.devices.empty() && parts.designs.empty())
    return refused(file,
                   "adds nothing; let its STELE_SIM_PLUGIN add a scheduler, device or design");
  if (auto ok = check_added(file, "scheduler", parts.schedulers, schedulers()); !ok) return ok;
  if (auto ok = check_added(file, "device", parts.devices, devices()); !ok) return ok;
  if (auto ok = check_added(file, "design", parts.designs, designs()); !ok) return ok;
  for (const scheduler_kind& k : parts.schedulers) schedulers().add(k, file);
  for (const device_kind& k : parts.devices) devices().add(k, file);
  for (const design_kind& k : parts.designs) designs().add(k, file);
  return {};
}

// Asks for the headers that the plug-in was compiled with, and only then for its parts.
result<> fill(const std::string& file, plugin_entry* entry, plugin_parts& parts) {
  constexpr const char* again = "compile it again with the headers of this laboratory";
  try {
    const std::uint64_t headers = entry(nullptr);
    if (headers >> 32 != plugin_version)
      return refused(file, fmt::format("was compiled for version {} of plug-ins, and this "
                                       "laboratory has version {}; {}",
                                       headers >> 32, plugin_version, again));
    if (headers != plugin_headers())
      return refused(file, fmt::format("was compiled with headers whose classes have other sizes "
                                       "than this laboratory's; {}",
                                       again));
    entry(&parts);
  } catch (const std::exception& e) {
    return refused(
        file, fmt::format("throws when it is loaded: {}; mend its STELE_SIM_PLUGIN", e.what()));
  } catch (...) {
    return refused(file,
                   "throws what is no std::exception when it is loaded; mend its "
                   "STELE_SIM_PLUGIN");
  }
  return {};
}

}  // namespace

result<std::string> load_plugin(const std::string& path) {
  static std::vector<std::string> loaded;
  std::error_code none;
  const std::string file = std::filesystem::canonical(path, none).string();
  if (none || !std::filesystem::is_regular_file(file))
    return base::fail(
        errc::not_found,
        fmt::format("there is no plug-in {}; give the path of a shared object", path));
  if (std::ranges::find(loaded, file) != loaded.end()) return file;
  library handle(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr)
    return refused(file, fmt::format("cannot be loaded: {}; compile it as docs/guide/lab.md shows",
                                     dlerror()));
  auto* const entry = reinterpret_cast<plugin_entry*>(dlsym(handle.get(), entry_name));
  if (entry == nullptr)
    return refused(file, fmt::format("has no function {}; define it with STELE_SIM_PLUGIN of "
                                     "sim/plugin.h",
                                     entry_name));
  plugin_parts parts;
  if (auto filled = fill(file, entry, parts); !filled) return std::unexpected(filled.error());
  if (auto added = add_all(file, parts); !added) return std::unexpected(added.error());
  static_cast<void>(handle.release());  // its code is needed until the program ends
  loaded.push_back(file);
  return file;
}

std::vector<plugged_part> plugged_parts(const machine_config& m) {
  const std::pair<const char*, const memory_config*> memories[] = {
      {"nonvolatile_memory.", &m.nonvolatile_memory}, {"volatile_memory.", &m.volatile_memory}};
  std::vector<plugged_part> parts;
  const auto add = [&](const char* what, const std::string& name, const std::string& key,
                       const std::string& plugin) {
    if (!plugin.empty()) parts.push_back({what, name, key, plugin});
  };
  for (const auto& [section, c] : memories) {
    add("device", c->technology, std::string(section) + "technology",
        devices().plugin_of(c->technology));
    add("scheduler", c->scheduler, std::string(section) + "scheduler",
        schedulers().plugin_of(c->scheduler));
  }
  add("design", m.design.name, "design.name", designs().plugin_of(m.design.name));
  return parts;
}

error plugin_threw(const machine_config& m, const std::string& what) {
  return {errc::invalid_argument,
          fmt::format("the run ended because a plug-in ({}) threw: {}; mend the plug-in or leave "
                      "it out",
                      fmt::join(m.plugins, ", "), what)};
}

}  // namespace stele::sim
