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

// The keys that differ from their defaults and have no effect because of the design; and their
// return to the defaults.
std::vector<config_conflict> idle_keys(const machine_config& m);
void reset_idle_keys(machine_config& m);

}  // namespace stele::sim
