// The sum of the values that a transaction stores home, in records of kind undo_with_sum: recovery
// tells by it whether home has all of them. docs/format/log.md is the page.
//
// The words may come in any order. Each term is a bijection of the word: one word that differs
// always changes the sum; several go unnoticed with probability 2^-64. Not cryptographic.
#pragma once

#include <cstdint>

namespace stele::format {

class values_sum {
 public:
  explicit constexpr values_sum(std::uint64_t pool_id, std::uint64_t txid) noexcept
      : sum_(pool_id ^ txid * 0x9E3779B97F4A7C15u) {}

  // A word at a home offset; bytes that are not stored are zero in it.
  constexpr void add(std::uint64_t offset, std::uint64_t word) noexcept {
    std::uint64_t term = (word ^ offset * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    term ^= term >> 32;
    sum_ += term * 0x94D049BB133111EBu;
  }
  constexpr std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_;
};

static_assert(
    [] {
      values_sum a(1, 2), b(1, 2), other(1, 2), moved(1, 2);
      a.add(8, 5), a.add(16, 6), b.add(16, 6), b.add(8, 5);
      other.add(8, 5), other.add(16, 7), moved.add(8, 6), moved.add(16, 5);
      return a.value() == b.value() && a.value() != other.value() && a.value() != moved.value();
    }(),
    "the order does not count; values and their places do");
static_assert(values_sum(1, 2).value() != values_sum(1, 3).value());

}  // namespace stele::format
