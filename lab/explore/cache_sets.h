// The lines that a set-associative cache holds, which of them are dirty, and which one is evicted
// for another.
//
// Sets, frames and replacement policies (lru, plru, bip, random) are those of the simulator
// (sim/cache/). cache_model holds the contents.
#pragma once

#include <sim/cache/cache_array.h>

#include <optional>

namespace stele::explore {

struct cache_geometry {
  std::string_view policy = "lru";  // a name of sim::replacement_policies()
  std::size_t lines = 64, ways = 4;
};
// Errors: invalid_argument for an impossible cache.
[[nodiscard]] result<> check_geometry(const cache_geometry& geometry);

// The names of all policies.
std::vector<std::string_view> all_policies();

class cache_sets {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // The cache is empty. The caller has checked the geometry.
  explicit cache_sets(const cache_geometry& geometry);
  void reset(std::uint64_t seed);

  // A store to a line: the line is now in the cache and dirty. Returns the dirty line that was
  // evicted for it, or none.
  std::uint32_t write(std::uint32_t line);
  // The line's content has been written back. Returns false when it was not dirty here.
  bool clean(std::uint32_t line) noexcept;
  // Removes the line. Returns true when it was dirty.
  bool invalidate(std::uint32_t line) noexcept;

 private:
  cache_geometry geometry_;
  std::optional<sim::cache_array> lines_;
  std::vector<bool> dirty_;  // for each frame
};

}  // namespace stele::explore
