// A set of line offsets in order of insertion: a line that many records name is flushed once.
//
// add() throws std::bad_alloc and leaves the set unchanged; try_add() returns false instead, for
// callers with another way.
#pragma once

#include <base/assert.h>
#include <stele/detail/access.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace stele::detail {

class line_set {
 public:
  void add(std::uint64_t line) {
    STELE_ASSERT(line % line_size == 0 && line / line_size >> number_bits == 0);
    if ((lines_.size() + 1) * 2 > slots_.size()) grow();
    if (insert(line / line_size)) lines_.push_back(line);
  }
  bool try_add(std::uint64_t line) noexcept {
    try {
      add(line);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  std::span<const std::uint64_t> all() const noexcept { return lines_; }
  void clear() noexcept {
    lines_.clear();
    if (++generation_ == last_generation) {
      std::fill(slots_.begin(), slots_.end(), 0);
      generation_ = 1;
    }
    STELE_ASSERT(generation_ != 0 && generation_ < last_generation);
  }

 private:
  // A slot holds a generation and a line's number. A slot of an earlier generation is free.
  static constexpr unsigned number_bits = 42;  // 256 TiB
  static constexpr std::uint64_t last_generation = std::uint64_t{1} << (64 - number_bits);

  bool insert(std::uint64_t number) noexcept {
    STELE_ASSERT(std::has_single_bit(slots_.size()) && lines_.size() < slots_.size());
    const std::uint64_t wanted = generation_ << number_bits | number;
    std::size_t at = (number * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
    for (; slots_[at] >> number_bits == generation_; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == wanted) return false;
    slots_[at] = wanted;
    return true;
  }
  void grow() {
    const std::size_t slots = slots_.empty() ? 1024 : slots_.size() * 2;
    lines_.reserve(slots / 2);  // reserved first: add() must not throw after insert()
    slots_.assign(slots, 0);
    for (std::uint64_t line : lines_) {
      [[maybe_unused]] const bool is_new = insert(line / line_size);
      STELE_ASSERT(is_new);
    }
    STELE_ASSERT(lines_.size() < lines_.capacity());
  }

  std::vector<std::uint64_t> lines_;
  std::vector<std::uint64_t> slots_;  // open addressing, linear probing
  std::uint64_t generation_ = 1;
};

}  // namespace stele::detail
