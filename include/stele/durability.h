// What the return of an update promises (durability), and what the commits of a pool survive
// (durability_level).
//
//   if (pool.durability_in_force() < stele::durability_level::power) std::puts("on memory");
//   auto added = pool.update([](counter& root) { root.n += 1; }, stele::durability::ordered);
//   if (auto done = pool.sync(); !done) return 1;  // on success `added` is durable
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace stele {

// What is durable when update() or commit() returns.
enum class durability : std::uint8_t {
  durable,  // the change survives what the pool's durability_level names
  // Atomic and ordered: the commit survives a crash only together with all commits before it. It is
  // durable at the latest with the next sync(), wait() or durable update of any thread, also one
  // that stores nothing. On a file `default` defers it: it waits for no device, other threads do
  // not see it until it is durable, and under stm they may wait for its lines. archapt-undo needs
  // one fence for it (its paper's logical commit), and other threads see it at once. Else it is
  // durable when update() returns; on memory that is faster (engine_options::defer_ordered).
  ordered,
};

// The strongest event that a pool's durable commits survive. A later level includes those before.
enum class durability_level : std::uint8_t {
  none,              // nothing: the mechanism none
  process,           // the end of the process: the pool lies in memory of the system
  power,             // a crash of the system, and loss of power
  power_with_cache,  // likewise; the medium protects the processor's cache, so nothing is flushed
};

namespace detail {
inline constexpr const char* durability_level_names[] = {"none", "process", "power",
                                                         "power, cache included"};
}

// As programs, options of front ends and rows of benchmarks write it: "none", "process", "power",
// "power, cache included".
constexpr const char* name_of(durability_level level) noexcept {
  return detail::durability_level_names[static_cast<unsigned>(level)];
}
// Null: another text.
constexpr std::optional<durability_level> durability_level_of(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < std::size(detail::durability_level_names); ++i)
    if (name == detail::durability_level_names[i]) return static_cast<durability_level>(i);
  return std::nullopt;
}

}  // namespace stele
