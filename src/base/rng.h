// Seeded random numbers, the same on every machine: SplitMix64 for the seed, xoshiro256** for the
// numbers (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021).
#pragma once

#include <base/assert.h>

#include <bit>
#include <cstdint>

namespace stele::base {

// One step of SplitMix64; also a good 64-bit mixer.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
// SplitMix64's first numbers. Guarded words and block checksums on media are made of it.
static_assert(mix(0) == 0xE220A8397B1DCDAFu);
static_assert(mix(0x9E3779B97F4A7C15u) == 0x6E789E6AA1B965F4u);

class rng {
 public:
  using result_type = std::uint64_t;

  explicit constexpr rng(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = seed = mix(seed);
    STELE_ASSERT((state_[0] | state_[1] | state_[2] | state_[3]) != 0);  // it would stay zero
  }

  constexpr std::uint64_t operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0 (multiply-shift; the bias is below 2^-32 for bounds below
  // 2^32).
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    STELE_ASSERT(bound != 0);
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<wide>((*this)()) * bound) >> 64);
  }

  // Uniform in [0, 1).
  constexpr double unit() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

 private:
  std::uint64_t state_[4];
};

}  // namespace stele::base
