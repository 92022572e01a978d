// The stores of a running transaction, by line: the new bytes, and a mask of the bytes that were
// stored. The "execution area" of Lu, Shu and Sun, "Blurred Persistence" (2016).
//
// A small hash table finds a line; it is emptied in constant time (generation stamps). The filter
// in this thread's access record has the bit of every line here set, so a load whose bit is clear
// does not look here.
#pragma once

#include <stele/access.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace stele::detail {

struct written_line {
  // The words stay uninitialized: most are never read.
  explicit written_line(std::uint64_t line) : offset(line) {}

  std::uint64_t offset;                // of the line in the pool
  std::uint64_t mask = 0;              // bit i: byte i has been stored
  std::array<std::uint64_t, 8> words;  // bytes outside the mask are unspecified

  std::uint8_t word_mask(unsigned word) const noexcept {
    return static_cast<std::uint8_t>(mask >> (word * 8));
  }
};

// 0xFF for each set bit of a word mask, 0 for the others.
constexpr std::uint64_t expand_mask(std::uint8_t word_mask) noexcept {
  std::uint64_t bits = word_mask;
  bits = (bits | bits << 28) & 0x0000000F0000000Fu;
  bits = (bits | bits << 14) & 0x0003000300030003u;
  bits = (bits | bits << 7) & 0x0101010101010101u;
  return bits * 0xFF;
}
static_assert(expand_mask(0xFF) == ~std::uint64_t{0} && expand_mask(0x01) == 0xFF &&
              expand_mask(0x80) == 0xFF00000000000000u && expand_mask(0x12) == 0x000000FF0000FF00u);

// The mask of `size` bytes of a line from byte `first` on.
constexpr std::uint64_t byte_range(std::size_t first, std::size_t size) noexcept {
  return (size == line_size ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << first;
}

class write_set {
 public:
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == capacity_; }  // the next add() allocates memory
  std::span<const written_line> lines() const noexcept { return {lines_.get(), count_}; }
  written_line& last() noexcept { return lines_.get()[count_ - 1]; }

  written_line* find(std::uint64_t line) noexcept {
    return const_cast<written_line*>(std::as_const(*this).find(line));
  }
  const written_line* find(std::uint64_t line) const noexcept {
    for (std::size_t at = slot_of(line);; at = (at + 1) & (slots_.size() - 1)) {
      const slot s = slots_[at];
      if (s.generation != generation_) return nullptr;
      if (lines_.get()[s.index].offset == line) return &lines_.get()[s.index];
    }
  }

  // Afterwards `more` lines can be added without allocating memory.
  void reserve(std::size_t more) {
    while (capacity_ - count_ < more) grow();
  }
  // Adds a line that find() did not find.
  written_line& add(std::uint64_t line) {
    if (full()) [[unlikely]]
      grow();
    written_line* const added = std::construct_at(&lines_.get()[count_], line);
    insert(line, static_cast<std::uint32_t>(count_++));
    return *added;
  }

  void clear() noexcept {
    count_ = 0;
    if (++generation_ == 0) [[unlikely]] {
      std::fill(slots_.begin(), slots_.end(), slot{});
      generation_ = 1;
    }
  }

 private:
  struct slot {
    std::uint32_t generation = 0;
    std::uint32_t index = 0;
  };
  struct line_deleter {
    void operator()(written_line* lines) const noexcept { ::operator delete(lines); }
  };
  static constexpr std::size_t initial_capacity = 32;  // lines; slots are twice as many
  static std::unique_ptr<written_line, line_deleter> allocate_lines(std::size_t lines) {
    return std::unique_ptr<written_line, line_deleter>(
        static_cast<written_line*>(::operator new(lines * sizeof(written_line))));
  }

  std::size_t slot_of(std::uint64_t line) const noexcept {
    return (line / line_size * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
  }
  void insert(std::uint64_t line, std::uint32_t index) noexcept {
    std::size_t at = slot_of(line);
    while (slots_[at].generation == generation_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {generation_, index};
  }
  [[gnu::noinline]] void grow() {
    auto more = allocate_lines(capacity_ * 2);
    std::uninitialized_copy_n(lines_.get(), count_, more.get());
    slots_.assign(capacity_ * 4, slot{});
    lines_ = std::move(more);
    capacity_ *= 2;
    generation_ = 1;
    for (std::uint32_t i = 0; i < count_; ++i) insert(lines_.get()[i].offset, i);
  }

  std::unique_ptr<written_line, line_deleter> lines_ = allocate_lines(initial_capacity);
  std::size_t count_ = 0, capacity_ = initial_capacity;
  std::vector<slot> slots_ = std::vector<slot>(2 * initial_capacity);
  std::uint32_t generation_ = 1;
};

// For the most common line: the index of its word if one word has been stored, and whole. Else 8.
constexpr unsigned single_whole_word(std::uint64_t mask) noexcept {
  const auto first = static_cast<unsigned>(std::countr_zero(mask | std::uint64_t{1} << 63));
  return mask >> first == 0xFF && first % 8 == 0 ? first / 8 : 8;
}
static_assert(single_whole_word(0xFF) == 0 && single_whole_word(0xFF00'0000'0000'0000u) == 7 &&
              single_whole_word(0xFF0) == 8 && single_whole_word(0xFFFF) == 8 &&
              single_whole_word(0) == 8);

// The first word at or after `from` that has been stored, in part or whole; 8 when there is none.
constexpr unsigned next_word(std::uint64_t mask, unsigned from) noexcept {
  const std::uint64_t rest = from < 8 ? mask >> (8 * from) << (8 * from) : 0;
  return rest == 0 ? 8 : static_cast<unsigned>(std::countr_zero(rest)) / 8;
}

// whole_words: a bit for each word that has been stored whole. stored_words: a bit for each word of
// which a byte has been stored.
constexpr unsigned gather_low_bits(std::uint64_t low_bits) noexcept {
  return static_cast<unsigned>(low_bits * 0x0102040810204080u >> 56);
}
constexpr unsigned whole_words(std::uint64_t mask) noexcept {
  mask &= mask >> 4, mask &= mask >> 2, mask &= mask >> 1;
  return gather_low_bits(mask & 0x0101010101010101u);
}
constexpr unsigned stored_words(std::uint64_t mask) noexcept {
  mask |= mask >> 4 & 0x0F0F0F0F0F0F0F0Fu, mask |= mask >> 2 & 0x3333333333333333u,
      mask |= mask >> 1 & 0x5555555555555555u;
  return gather_low_bits(mask & 0x0101010101010101u);
}
// Cheaper, for the common case: true if every stored word is whole. `words` then has their bits.
constexpr bool all_words_whole(std::uint64_t mask, unsigned& words) noexcept {
  const std::uint64_t low = mask & 0x0101010101010101u;
  words = gather_low_bits(low);
  return low * 0xFF == mask;
}
static_assert(whole_words(0xFF00'00FF'7F00'FFFFu) == 0b10010011 &&
              stored_words(0xFF00'0080'7F00'0001u) == 0b10011001);

}  // namespace stele::detail
