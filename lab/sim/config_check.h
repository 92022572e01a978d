// Contradictions between the keys of a machine.
#pragma once

#include <sim/config.h>

#include <optional>

namespace stele::sim {

struct config_conflict {
  std::vector<std::string> keys;  // the contradicting keys; the likeliest culprit first
  std::string sentence;
};

// The first contradiction, in the order of sections. Precondition: each key alone is within its
// bounds.
std::optional<config_conflict> find_config_conflict(const machine_config& m);

// The keys of [design] that differ from their defaults and have no effect on this design; and their
// return to the defaults.
std::vector<config_conflict> idle_design_keys(const design_config& d);
void reset_idle_keys(design_config& d);

}  // namespace stele::sim
