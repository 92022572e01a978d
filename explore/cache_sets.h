// The lines that a set-associative cache holds, which of them are dirty, and which leaves when another comes.
//
// Replacement policies: least recently used; tree pseudo-LRU; bimodal insertion (Qureshi, Jaleel, Patt, Steely and Emer,
// "Adaptive Insertion Policies for High Performance Caching", 2007, section 4: lines come in as the next to leave, one in 32
// as the last), and random. Set and tag are the line's number; contents are the business of cache_model.
#pragma once

#include <base/rng.h>
#include <stele/error.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stele::explore {

enum class replacement : std::uint8_t { lru, plru, bip, random };
inline constexpr std::array all_replacements = {replacement::lru, replacement::plru, replacement::bip, replacement::random};

std::string_view name_of(replacement r) noexcept;
std::optional<replacement> replacement_named(std::string_view name) noexcept;

struct cache_shape {
  replacement policy = replacement::lru;
  std::size_t lines = 64, ways = 4;
};
// Errors: invalid_argument, when there is no such cache.
result<> check_shape(const cache_shape& shape);

class cache_sets {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  explicit cache_sets(const cache_shape& shape);
  void empty(std::uint64_t seed);

  // A store to a line: it is there and dirty from now on. Returns the dirty line that had to leave, or none.
  std::uint32_t write(std::uint32_t line);
  // Its content has been written back. False: it was not dirty here.
  bool clean(std::uint32_t line) noexcept;
  // It leaves. True: it was dirty.
  bool drop(std::uint32_t line) noexcept;

 private:
  struct way {
    std::uint32_t line = none;
    bool dirty = false;
    std::int64_t used = 0;  // lru, bip: the least leaves first
  };

  way* find(std::uint32_t line) noexcept;
  way* set_of(std::uint32_t line) noexcept { return ways_.data() + line % sets_ * shape_.ways; }
  way& victim(way* set);
  void use(way* set, way& w) noexcept;
  void bring_in(way* set, way& w);
  std::uint64_t& tree_of(const way* set) noexcept {
    return trees_[static_cast<std::size_t>(set - ways_.data()) / shape_.ways];
  }

  cache_shape shape_;
  std::size_t sets_;
  std::vector<way> ways_;             // set by set
  std::vector<std::uint64_t> trees_;  // plru: bit n is node n; set: the next victim is to the right
  std::int64_t clock_ = 0;
  base::rng random_;
};

}  // namespace stele::explore
