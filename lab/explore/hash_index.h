// Maps the hash of an image to what is known of it: an open-addressing table from 64-bit hashes to
// 32-bit numbers.
//
// The table is bounded and is emptied when full, so a long run stays in memory. A state that comes
// back after that is judged again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stele::explore {

class hash_index {
 public:
  std::optional<std::uint32_t> find(std::uint64_t key) const noexcept {
    for (std::size_t at = key & mask();; at = (at + 1) & mask()) {
      if (slots_[at].value == nothing) return std::nullopt;
      if (slots_[at].key == key) return slots_[at].value;
    }
  }
  // Precondition: `key` is not in the table.
  void add(std::uint64_t key, std::uint32_t value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    insert(key, value);
    ++count_;
  }

 private:
  static constexpr std::uint32_t nothing = ~std::uint32_t{0};
  static constexpr std::size_t max_slots = std::size_t{1} << 25;  // half a gigabyte
  struct slot {
    std::uint64_t key = 0;
    std::uint32_t value = nothing;
  };

  std::size_t mask() const noexcept { return slots_.size() - 1; }
  void insert(std::uint64_t key, std::uint32_t value) noexcept {
    std::size_t at = key & mask();
    while (slots_[at].value != nothing) at = (at + 1) & mask();
    slots_[at] = {key, value};
  }
  void grow() {
    std::vector<slot> old(slots_.size() < max_slots ? slots_.size() * 2 : slots_.size());
    old.swap(slots_);
    count_ = 0;
    if (old.size() == slots_.size()) return;
    for (const slot& s : old)
      if (s.value != nothing) insert(s.key, s.value), ++count_;
  }

  std::vector<slot> slots_ = std::vector<slot>(1024);
  std::size_t count_ = 0;
};

}  // namespace stele::explore
