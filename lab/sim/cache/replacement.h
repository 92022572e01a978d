// Replacement policies: which line of a set leaves when another comes. Least recently used is built
// into cache_array; the others are plug-ins.
//
// Tree pseudo-LRU: a binary tree of bits over the ways; each bit points to the half used longer
// ago. Bimodal insertion (Qureshi, Jaleel, Patt, Steely and Emer, "Adaptive Insertion Policies for
// High Performance Caching", 2007, section 4): a line is inserted as the next victim, one in 32 as
// the last. Random: any way, from a seeded generator. A policy chooses only ways in `allowed` (bit
// w is way w), which is not 0.
#pragma once

#include <sim/archive.h>
#include <stele/error.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stele::sim {

class replacement {
 public:
  virtual ~replacement() = default;
  virtual void touched(std::size_t set, unsigned way) = 0;
  virtual void filled(std::size_t set, unsigned way) = 0;
  virtual unsigned victim(std::size_t set, std::uint32_t allowed) = 0;
  virtual void visit_state(archive& a) = 0;
};

struct replacement_policy {
  std::string_view name;
  // Returns null for the LRU of cache_array.
  std::unique_ptr<replacement> (*make)(std::size_t sets, unsigned ways, std::uint64_t seed);
};
std::span<const replacement_policy> replacement_policies() noexcept;
// Errors: invalid_argument, with the known names.
[[nodiscard]] result<const replacement_policy*> replacement_named(std::string_view name);

}  // namespace stele::sim
