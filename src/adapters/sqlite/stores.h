// What an update of the pool stores of a database: the lines in which blocks differ from home.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <base/assert.h>
#include "stored.h"

namespace stele::sqlite {

// Whether first blocks differ in more than SQLite changes of it in each commit: the counter, and
// its copy with the number of SQLite's version.
bool differ_beyond_counter(const std::byte* a, const std::byte* b) noexcept;

struct stores {
  struct change {
    std::uint64_t block;
    const std::byte* bytes;  // new content
    std::uint64_t lines;     // bit i: line i differs
    std::byte* home;
  };
  std::vector<change> changes;
  bool counts = false;       // they raise SQLite's own counter
  bool only_counts = false;  // and change no more of the first block

  void clear() noexcept {
    changes.clear();
    counts = only_counts = false;
  }
  // Adds what the block is to have, and home has not. Throws std::bad_alloc, unless `changes` has
  // room.
  void compare(std::uint64_t number, const std::byte* bytes, std::byte* home);
  // In a transaction.
  void store_lines() const;

 private:
  bool are_in_order() const noexcept;
};

}  // namespace stele::sqlite
