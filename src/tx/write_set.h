// The stores of a running transaction, by line: the new bytes, and a mask of the bytes that were
// stored. The "execution area" of Lu, Shu and Sun, "Blurred Persistence" (2016).
//
// A small hash table finds a line; it is emptied in constant time (generation stamps). The filter
// in this thread's access record has the bit of every line here set, so a load whose bit is clear
// does not look here.
#pragma once

#include <base/assert.h>
#include <stele/detail/access.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace stele::detail {

struct written_line {
  // The words stay uninitialized: most are never read.
  written_line(std::uint64_t line, std::uint64_t bytes) : offset(line), mask(bytes) {}

  std::uint64_t offset;                // of the line in the pool
  std::uint64_t mask;                  // bit i: byte i has been stored
  std::array<std::uint64_t, 8> words;  // bytes outside the mask are unspecified

  std::uint8_t word_mask(unsigned word) const noexcept {
    STELE_ASSERT(word < 8);
    return static_cast<std::uint8_t>(mask >> (word * 8));
  }
  // Stores the bytes of `stored` here too.
  void put(const written_line& stored) noexcept;
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

inline void written_line::put(const written_line& stored) noexcept {
  STELE_ASSERT(stored.offset == offset && stored.mask != 0);
  for (unsigned w = 0; w < words.size(); ++w) {
    const std::uint64_t bits = expand_mask(stored.word_mask(w));
    if (bits != 0) words[w] = (words[w] & ~bits) | (stored.words[w] & bits);
  }
  mask |= stored.mask;
}

// The mask of `size` bytes of a line from byte `first` on.
constexpr std::uint64_t byte_range(std::size_t first, std::size_t size) noexcept {
  STELE_ASSERT(first + size <= line_size && first < line_size);
  return (size == line_size ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << first;
}

class write_set {
 public:
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == capacity_; }  // the next add() allocates memory
  std::span<const written_line> lines() const noexcept { return {lines_.get(), count_}; }
  std::span<written_line> lines() noexcept { return {lines_.get(), count_}; }
  written_line& last() noexcept {
    STELE_ASSERT(count_ != 0);
    return lines_.get()[count_ - 1];
  }

  written_line* find(std::uint64_t line) noexcept {
    return const_cast<written_line*>(std::as_const(*this).find(line));
  }
  const written_line* find(std::uint64_t line) const noexcept {
    STELE_ASSERT(line % line_size == 0);
    for (std::size_t at = slot_of(line);; at = (at + 1) & slot_mask_) {
      const std::uint64_t slot = slots_.get()[at];
      if (slot >> 32 != generation_) return nullptr;
      STELE_ASSERT(static_cast<std::uint32_t>(slot) < count_);
      const written_line& found = lines_.get()[static_cast<std::uint32_t>(slot)];
      if (found.offset == line) return &found;
    }
  }

  // Afterwards `more` lines can be added without allocating memory.
  void reserve(std::size_t more) {
    while (capacity_ - count_ < more) grow();
    STELE_ASSERT(more == 0 || !full());
  }
  // Adds a line that find() did not find.
  written_line& add(std::uint64_t line) {
    STELE_ASSERT_WHOLE(find(line) == nullptr);
    if (full()) [[unlikely]]
      grow();
    written_line* const added = std::construct_at(&lines_.get()[count_], line, 0);
    insert(line, count_++);
    return *added;
  }
  // The same for a line whose word `word` is stored whole. Precondition: not full().
  void add_word(std::uint64_t line, std::uint64_t word, std::uint64_t bits) noexcept {
    STELE_ASSERT(!full() && word < 8);
    STELE_ASSERT_WHOLE(find(line) == nullptr);
    const std::size_t index = count_++;
    std::construct_at(&lines_.get()[index], line, std::uint64_t{0xFF} << (8 * word))->words[word] =
        bits;
    insert(line, index);
  }

  void clear() noexcept {
    STELE_ASSERT_WHOLE(finds_every_line());
    count_ = 0;
    if (++generation_ == last_generation) [[unlikely]]
      empty_slots();
    STELE_ASSERT(generation_ != 0 && generation_ < last_generation);
  }

 private:
  static constexpr std::uint64_t last_generation = std::uint64_t{1} << 32;
  struct line_deleter {
    void operator()(written_line* lines) const noexcept { ::operator delete(lines); }
  };
  static constexpr std::size_t initial_capacity = 32;  // lines; slots are twice as many
  static std::unique_ptr<written_line, line_deleter> allocate_lines(std::size_t lines) {
    return std::unique_ptr<written_line, line_deleter>(
        static_cast<written_line*>(::operator new(lines * sizeof(written_line))));
  }

  // For assertions.
  [[maybe_unused]] bool finds_every_line() const noexcept {
    return std::ranges::all_of(lines(), [this](const auto& l) { return find(l.offset) == &l; });
  }
  std::size_t slot_of(std::uint64_t line) const noexcept {
    return (line / line_size * 0x9E3779B97F4A7C15u >> 32) & slot_mask_;
  }
  void insert(std::uint64_t line, std::uint64_t index) noexcept {
    STELE_ASSERT(index < count_ && count_ <= slot_mask_ / 2 + 1);  // there is a free slot
    std::uint64_t* const slots = slots_.get();
    std::size_t at = slot_of(line);
    while (slots[at] >> 32 == generation_) at = (at + 1) & slot_mask_;
    slots[at] = generation_ << 32 | index;
  }
  [[gnu::noinline]] void grow() {
    auto more = allocate_lines(capacity_ * 2);
    auto more_slots = std::make_unique<std::uint64_t[]>(capacity_ * 4);
    std::uninitialized_copy_n(lines_.get(), count_, more.get());
    lines_ = std::move(more);
    slots_ = std::move(more_slots);
    capacity_ *= 2;
    slot_mask_ = 2 * capacity_ - 1;
    generation_ = 1;
    for (std::size_t i = 0; i < count_; ++i) insert(lines_.get()[i].offset, i);
    STELE_ASSERT(!full() && std::has_single_bit(slot_mask_ + 1));
    STELE_ASSERT_WHOLE(finds_every_line());
  }
  [[gnu::noinline]] void empty_slots() noexcept {
    std::fill_n(slots_.get(), slot_mask_ + 1, 0);
    generation_ = 1;
  }

  std::unique_ptr<written_line, line_deleter> lines_ = allocate_lines(initial_capacity);
  std::size_t count_ = 0, capacity_ = initial_capacity;
  // A generation and a line's index. A slot of an earlier generation is free.
  std::unique_ptr<std::uint64_t[]> slots_ = std::make_unique<std::uint64_t[]>(2 * initial_capacity);
  std::size_t slot_mask_ = 2 * initial_capacity - 1;
  std::uint64_t generation_ = 1;
};

// For the most common line: the index of its word if one word has been stored, and whole. Else 8.
constexpr unsigned single_whole_word(std::uint64_t mask) noexcept {
  const unsigned first = static_cast<unsigned>(std::countr_zero(mask)) & 56;
  return mask == std::uint64_t{0xFF} << first ? first / 8 : 8;
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
