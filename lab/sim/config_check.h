// What the keys of a machine say together that cannot be.
#pragma once

#include <sim/config.h>

#include <optional>

namespace stele::sim {

struct contradiction {
  std::vector<std::string> keys;  // that contradict each other; the first is the likeliest culprit
  std::string sentence;
};

// The first in the order of sections. Takes for granted that each key alone is within its bounds.
std::optional<contradiction> contradiction_in(const machine_config& m);

}  // namespace stele::sim
