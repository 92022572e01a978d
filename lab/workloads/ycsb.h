// Parts of ycsb: what the words of its operations mean, and the keys that exist.
#pragma once

#include <base/rng.h>

#include <algorithm>
#include <cstdint>

namespace stele::workloads::ycsb {

// The key of a read with this word is a rank of recency.
inline constexpr std::uint64_t by_recency = 1;

// The keys that exist.
struct key_range {
  std::uint64_t loaded;    // keys 0 to loaded - 1, from the start
  std::uint64_t inserted;  // number of inserts

  std::uint64_t room() const { return std::max<std::uint64_t>(loaded / 8, 1); }
  std::uint64_t keys() const { return loaded + std::min(inserted, room()); }
  std::uint64_t next() const { return loaded + inserted % room(); }
  // The rank-th latest key; loaded keys count as inserted in their order.
  std::uint64_t latest(std::uint64_t rank) const {
    const std::uint64_t held = std::min(inserted, room());
    return rank < held ? loaded + (inserted - 1 - rank) % room()
                       : loaded - 1 - (rank - held) % loaded;
  }
};

// The word that a read-modify-write makes of the old one.
inline std::uint64_t modified(std::uint64_t old_word, std::uint64_t with) {
  return base::mix(old_word ^ with);
}

}  // namespace stele::workloads::ycsb
