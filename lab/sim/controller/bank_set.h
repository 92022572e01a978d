// A set of banks of a channel, as bits.
//
// A channel has at most max_banks. What is asked at every command is of a set of one word where the
// channel has no more than 64 banks: schedulers are compiled for both widths.
#pragma once

#include <sim/archive.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::sim {

inline constexpr unsigned max_banks = 256;

template <unsigned Words>
class bank_words {
 public:
  // The first 64 banks, as bits.
  constexpr bank_words(std::uint64_t first = 0) noexcept { words_[0] = first; }
  // Precondition: the set has no bank beyond this one's width.
  template <unsigned Others>
  constexpr explicit bank_words(const bank_words<Others>& s) noexcept {
    for (unsigned w = 0; w < Words && w < Others; ++w) words_[w] = s.word(w);
  }
  static constexpr bank_words all() noexcept { return ~bank_words(); }
  static constexpr bank_words of(unsigned bank) noexcept {
    bank_words s;
    s.insert(bank);
    return s;
  }

  constexpr std::uint64_t word(unsigned w) const noexcept { return words_[w]; }
  constexpr bool has(unsigned bank) const noexcept { return words_[index(bank)] >> bank % 64 & 1; }
  constexpr void insert(unsigned bank) noexcept { words_[index(bank)] |= bit(bank); }
  constexpr void erase(unsigned bank) noexcept { words_[index(bank)] &= ~bit(bank); }
  constexpr bool empty() const noexcept {
    std::uint64_t any = 0;
    for (const std::uint64_t w : words_) any |= w;
    return any == 0;
  }
  // Preconditions: not empty.
  constexpr unsigned first() const noexcept {
    unsigned w = 0;
    while (words_[w] == 0) ++w;
    return w * 64 + static_cast<unsigned>(std::countr_zero(words_[w]));
  }
  constexpr unsigned last() const noexcept {
    unsigned w = Words - 1;
    while (words_[w] == 0) --w;
    return w * 64 + 63 - static_cast<unsigned>(std::countl_zero(words_[w]));
  }
  // Calls f(bank) for each bank, in order.
  template <class F>
  [[gnu::always_inline]] constexpr void for_each(F&& f) const {
    for (unsigned w = 0; w < Words; ++w)
      for (std::uint64_t left = words_[w]; left; left &= left - 1)
        f(w * 64 + static_cast<unsigned>(std::countr_zero(left)));
  }

  constexpr bank_words& operator|=(const bank_words& s) noexcept {
    for (unsigned w = 0; w < Words; ++w) words_[w] |= s.words_[w];
    return *this;
  }
  constexpr bank_words& operator&=(const bank_words& s) noexcept {
    for (unsigned w = 0; w < Words; ++w) words_[w] &= s.words_[w];
    return *this;
  }
  friend constexpr bank_words operator|(bank_words a, const bank_words& b) noexcept {
    return a |= b;
  }
  friend constexpr bank_words operator&(bank_words a, const bank_words& b) noexcept {
    return a &= b;
  }
  constexpr bank_words operator~() const noexcept {
    bank_words s;
    for (unsigned w = 0; w < Words; ++w) s.words_[w] = ~words_[w];
    return s;
  }
  friend constexpr bool operator==(const bank_words&, const bank_words&) = default;
  void visit_state(archive& a) { a.fixed(words_); }

 private:
  static constexpr std::size_t index(unsigned bank) noexcept { return Words == 1 ? 0 : bank / 64; }
  static constexpr std::uint64_t bit(unsigned bank) noexcept {
    return std::uint64_t{1} << bank % 64;
  }

  std::array<std::uint64_t, Words> words_{};
};

using bank_set = bank_words<max_banks / 64>;

}  // namespace stele::sim
