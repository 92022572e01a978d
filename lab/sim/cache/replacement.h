// Which line of a set leaves when another comes: least recently used is built into cache_array, the
// others are plug-ins.
//
// Tree pseudo-LRU: a binary tree of bits over the ways, each pointing to the half used longer ago.
// Bimodal insertion (Qureshi, Jaleel, Patt, Steely and Emer, "Adaptive Insertion Policies for High
// Performance Caching", 2007, section 4): a line comes in as the next to leave, one in 32 as the
// last. Random: any, from a seeded generator. A policy never chooses a way outside `allowed` (bit w
// is way w), which is not 0.
#pragma once

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
};

struct replacement_policy {
  std::string_view name;
  // Null: cache_array's own least recently used.
  std::unique_ptr<replacement> (*make)(std::size_t sets, unsigned ways, std::uint64_t seed);
};
std::span<const replacement_policy> replacement_policies() noexcept;
// Errors: invalid_argument, naming the known ones.
[[nodiscard]] result<const replacement_policy*> replacement_named(std::string_view name);

}  // namespace stele::sim
