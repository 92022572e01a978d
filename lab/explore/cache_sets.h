// The lines that a set-associative cache holds, which of them are dirty, and which leaves when
// another comes.
//
// Sets, places and replacement policies (lru, plru, bip, random) are the simulator's (sim/cache/);
// contents are the business of cache_model.
#pragma once

#include <sim/cache/cache_array.h>

#include <optional>

namespace stele::explore {

struct cache_geometry {
  std::string_view policy = "lru";  // a name of sim::replacement_policies()
  std::size_t lines = 64, ways = 4;
};
// Errors: invalid_argument, when there is no such cache.
[[nodiscard]] result<> check_geometry(const cache_geometry& geometry);

// The names of all policies.
std::vector<std::string_view> all_policies();

class cache_sets {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // The geometry has been checked. Empty.
  explicit cache_sets(const cache_geometry& geometry);
  void reset(std::uint64_t seed);

  // A store to a line: it is there and dirty from now on. Returns the dirty line that had to leave,
  // or none.
  std::uint32_t write(std::uint32_t line);
  // Its content has been written back. False: it was not dirty here.
  bool clean(std::uint32_t line) noexcept;
  // It leaves. True: it was dirty.
  bool invalidate(std::uint32_t line) noexcept;

 private:
  cache_geometry geometry_;
  std::optional<sim::cache_array> lines_;
  std::vector<bool> dirty_;  // of each place
};

}  // namespace stele::explore
