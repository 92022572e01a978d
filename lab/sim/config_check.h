// What the keys of a machine say together that cannot be.
#pragma once

#include <sim/config.h>

#include <optional>

namespace stele::sim {

struct config_conflict {
  std::vector<std::string> keys;  // that contradict each other; the first is the likeliest culprit
  std::string sentence;
};

// The first in the order of sections. Takes for granted that each key alone is within its bounds.
std::optional<config_conflict> find_config_conflict(const machine_config& m);

}  // namespace stele::sim
