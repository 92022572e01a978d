// The lines of a database that an update of the pool stores: those that differ from home.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <base/assert.h>
#include "stored.h"

namespace stele::sqlite {

// Whether two first blocks differ in more than SQLite changes in each commit: the change counter,
// and its copy with SQLite's version number.
bool differ_beyond_counter(const std::byte* a, const std::byte* b) noexcept;

struct stores {
  struct change {
    std::uint64_t block;
    const std::byte* bytes;  // new content
    std::uint64_t lines;     // bit i: line i differs
    std::byte* home;
  };
  std::vector<change> changes;
  bool counts = false;       // the change counter is raised
  bool only_counts = false;  // and the first block changes no further

  void clear() noexcept {
    changes.clear();
    counts = only_counts = false;
  }
  // Adds the lines of a block that differ from home. Throws std::bad_alloc, unless `changes` has
  // room.
  void compare(std::uint64_t number, const std::byte* bytes, std::byte* home);
  // In a transaction.
  void store_lines() const;

 private:
  bool are_in_order() const noexcept;
};

}  // namespace stele::sqlite
