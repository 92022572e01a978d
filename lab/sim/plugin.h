// What a plug-in includes: a shared object, compiled outside of this tree, that adds schedulers,
// devices and designs. The key `plugins` of a machine file names it.
//
// STELE_SIM_PLUGIN defines the one function that the laboratory calls:
//
//   STELE_SIM_PLUGIN(parts) { parts.schedulers.push_back({"mine", false, false, make_mine}); }
//
// It may throw; the laboratory then refuses the plug-in with the exception's text. A plug-in uses
// the classes of these headers as they were when it was compiled, so one that was compiled with
// other headers is refused. A loaded plug-in stays until the program ends.
#pragma once

#include <sim/controller/scheduler.h>
#include <sim/design/design.h>
#include <sim/device/retention.h>

#include <cstdint>
#include <vector>

namespace stele::sim {

struct plugin_parts {
  std::vector<scheduler_kind> schedulers;
  std::vector<device_kind> devices;
  std::vector<design_kind> designs;
};

// Raised when a class that plug-ins use changes its meaning.
inline constexpr std::uint32_t plugin_version = 2;

// Changes when a class that plug-ins use changes its size.
constexpr std::uint32_t plugin_layout() noexcept {
  std::uint32_t layout = 2166136261;
  for (const std::size_t size :
       {sizeof(channel_state), sizeof(entry), sizeof(request), sizeof(decision),
        sizeof(timing_table), sizeof(epoch_tracker), sizeof(epoch_position), sizeof(memory_config),
        sizeof(machine_config), sizeof(write_pulses), sizeof(design_context), sizeof(hierarchy),
        sizeof(action), sizeof(line_set), sizeof(plugin_parts)})
    layout = (layout ^ static_cast<std::uint32_t>(size)) * 16777619;
  return layout;
}

// The version, above the layout.
constexpr std::uint64_t plugin_headers() noexcept {
  return std::uint64_t{plugin_version} << 32 | plugin_layout();
}

// Called twice: with null, and if the laboratory has the same headers, with the parts to fill.
// Returns plugin_headers().
using plugin_entry = std::uint64_t(plugin_parts* to);

}  // namespace stele::sim

#define STELE_SIM_PLUGIN(parts)                                             \
  static void stele_sim_plugin_parts(stele::sim::plugin_parts& parts);      \
  extern "C" [[gnu::visibility("default")]] std::uint64_t stele_sim_plugin( \
      stele::sim::plugin_parts* to) {                                       \
    if (to != nullptr) stele_sim_plugin_parts(*to);                         \
    return stele::sim::plugin_headers();                                    \
  }                                                                         \
  static void stele_sim_plugin_parts(stele::sim::plugin_parts& parts)
