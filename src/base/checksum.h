// A 64-bit checksum over 8-byte words. The seed says what the bytes belong to (pool id, place), so
// that correct bytes at the wrong place fail the check. Each step is a bijection of the running
// value: one changed word always changes the checksum; several changed words go unnoticed with
// probability 2^-64 (2^-32 where only half of the checksum is kept). Not cryptographic.
#pragma once

#include <base/assert.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stele::base {

class checksum {
 public:
  checksum() noexcept = default;  // an unspecified value
  explicit constexpr checksum(std::uint64_t seed) noexcept : sum_(seed ^ 0x6A09E667F3BCC909u) {}

  constexpr void add(std::uint64_t word) noexcept {
    sum_ = (sum_ + word) * 0x9E3779B97F4A7C15u;
    sum_ ^= sum_ >> 32;
  }

  // `size` is a multiple of 8.
  void add(const void* bytes, std::size_t size) noexcept {
    STELE_ASSERT(size % 8 == 0);
    for (std::size_t at = 0; at < size; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, static_cast<const char*>(bytes) + at, 8);
      add(word);
    }
  }

  constexpr std::uint64_t value() const noexcept {
    return (sum_ ^ (sum_ >> 29)) * 0xBF58476D1CE4E5B9u;
  }
  constexpr std::uint32_t value32() const noexcept {
    return static_cast<std::uint32_t>(value() >> 32);
  }

 private:
  std::uint64_t sum_;
};

// Each step is a bijection: a word that differs is not forgotten, and neither is the order.
static_assert([] {
  checksum a(1), b(1), swapped(1);
  a.add(5), a.add(6), b.add(5), b.add(7), swapped.add(6), swapped.add(5);
  return a.value() != b.value() && a.value() != swapped.value() && a.value32() == a.value() >> 32;
}());

// The checksums of the first, second, ... words of rows of `width` words. Several short chains,
// because the steps of one long chain would wait for each other.
template <std::size_t width>
class checksum_columns {
  static_assert(width != 0 && width <= 8, "the loop over a row is unrolled eight times");

 public:
  checksum_columns() noexcept = default;  // unspecified sums
  explicit constexpr checksum_columns(const checksum& start) noexcept { sums_.fill(start); }

  constexpr void add(const std::uint64_t* row) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < width; ++i) sums_[i].add(row[i]);
  }
  constexpr void add_to(checksum& sum) const noexcept {
    for (const checksum& column : sums_) sum.add(column.value());
  }

 private:
  std::array<checksum, width> sums_;
};

}  // namespace stele::base
