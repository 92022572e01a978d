// A set of line offsets that keeps the order of insertion: a line that many records name is flushed once.
#pragma once

#include <stele/access.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace stele::detail {

class line_set {
 public:
  void add(std::uint64_t line) {
    if ((lines_.size() + 1) * 2 > slots_.size()) grow();
    if (insert(line)) lines_.push_back(line);
  }
  std::span<const std::uint64_t> all() const noexcept { return lines_; }
  void drop_last() noexcept {
    if (!lines_.empty()) lines_.pop_back();
  }
  void clear() noexcept {
    std::fill(slots_.begin(), slots_.end(), empty);
    lines_.clear();
  }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  // The slot of a line, or the empty one where it would go.
  std::size_t find(std::uint64_t line) const noexcept {
    std::size_t at = (line / line_size * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
    while (slots_[at] != line && slots_[at] != empty) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  bool insert(std::uint64_t line) noexcept {
    std::uint64_t& slot = slots_[find(line)];
    if (slot == line) return false;
    slot = line;
    return true;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, empty);
    for (std::uint64_t line : lines_) insert(line);
  }

  std::vector<std::uint64_t> lines_;
  std::vector<std::uint64_t> slots_;  // open addressing, linear probing
};

}  // namespace stele::detail
