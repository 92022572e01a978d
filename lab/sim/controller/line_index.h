// Finds the youngest queued write of each line. Reads are served from it, and later writes to the
// line stay behind it.
//
// A hash table with linear probing. Removal shifts entries back, so there are no deleted marks. The
// table grows to stay at most half full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stele::sim {

using entry_index = std::uint32_t;
inline constexpr entry_index no_entry = ~entry_index{0};

class line_index {
 public:
  line_index() : slots_(64) {}

  entry_index find(std::uint64_t line) const noexcept {
    if (used_ == 0) return no_entry;
    const slot& s = slots_[seek(line)];
    return s.entry;
  }

  void put(std::uint64_t line, entry_index entry) {
    slot& s = slots_[seek(line)];
    if (s.entry == no_entry && ++used_ * 2 > slots_.size()) {
      grow();
      slots_[seek(line)] = {line, entry};
      return;
    }
    s = {line, entry};
  }

  // Precondition: `line` is in the table.
  void erase(std::uint64_t line) noexcept {
    std::size_t hole = seek(line);
    for (std::size_t i = after(hole); slots_[i].entry != no_entry; i = after(i)) {
      const std::size_t home = hash(slots_[i].line);
      // its first slot lies behind the hole
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].entry = no_entry;
    --used_;
  }

 private:
  struct slot {
    std::uint64_t line = 0;
    entry_index entry = no_entry;
  };
  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t after(std::size_t i) const noexcept { return (i + 1) & mask(); }
  std::size_t hash(std::uint64_t line) const noexcept {
    return (line * 0x9e3779b97f4a7c15U >> 32) & mask();
  }
  std::size_t seek(std::uint64_t line) const noexcept {
    std::size_t i = hash(line);
    while (slots_[i].entry != no_entry && slots_[i].line != line) i = after(i);
    return i;
  }
  void grow() {
    std::vector<slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const slot& s : old)
      if (s.entry != no_entry) slots_[seek(s.line)] = s;
  }

  std::vector<slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace stele::sim
