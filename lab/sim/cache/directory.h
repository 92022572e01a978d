// Which private caches hold a line of the shared cache: directory MESI, in its stable states.
//
// Invariants: a line with an owner has that one sharer; only an owner's copy may be newer than the
// shared cache's. Whether a copy is exclusive or modified, only its core knows (it may store
// without a request).
#pragma once

#include <sim/archive.h>

#include <bit>
#include <cstdint>

namespace stele::sim {

// Marks the line number of a superseded version: a newer one is in the same set (design/kiln.h).
inline constexpr std::uint64_t superseded_line = std::uint64_t{1} << 58;

struct directory_entry {
  static constexpr std::uint8_t no_owner = 0xff;
  static constexpr std::uint8_t dirty = 1,
                                fill_pending = 2;  // newer than memory; its content is not yet here
  std::uint32_t sharers = 0;                       // bit c: core c
  std::uint8_t owner = no_owner;
  std::uint8_t flags = 0;

  bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
  bool shared_by_others(unsigned core) const noexcept { return (sharers & ~(1u << core)) != 0; }
  void add_sharer(unsigned core) noexcept {
    sharers |= 1u << core;
    owner = std::has_single_bit(sharers) ? static_cast<std::uint8_t>(core) : no_owner;
  }
  void set_owner(unsigned core) noexcept {
    sharers = 1u << core;
    owner = static_cast<std::uint8_t>(core);
  }
  void remove(unsigned core) noexcept {
    sharers &= ~(1u << core);
    if (owner == core) owner = no_owner;
  }
  void visit_state(archive& a) { a(sharers, owner, flags); }
  friend bool operator==(const directory_entry&, const directory_entry&) = default;
};
static_assert(sizeof(directory_entry) == 8);

}  // namespace stele::sim
