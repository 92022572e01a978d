// The values and initial content of the workloads, for contenders that do not run on Stele's containers.
#pragma once

#include <base/rng.h>
#include <stele/error.h>
#include <workloads/workload.h>

#include <cstdint>
#include <cstring>

namespace stele::bench {

// Fills `size` bytes (a multiple of 8) as the value of `seed`.
inline void write_value(void* to, std::size_t size, std::uint64_t seed) noexcept {
  auto* words = static_cast<std::uint64_t*>(to);
  for (std::size_t i = 0; i < size / 8; ++i) words[i] = seed + i;
}

// Reads a value in full, as a reader would copy it.
inline void consume_value(const void* from, std::size_t size) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size / 8; ++i) sum += static_cast<const std::uint64_t*>(from)[i];
  asm volatile("" : : "r"(sum));
}

// put(key, seed) for the keys that a map holds at the start: every second one.
template <class Put>
result<> fill_half(const workloads::parameters& p, Put put) {
  base::rng random(p.seed);
  for (std::uint64_t key = 0; key < p.keys; ++key)
    if ((random() & 1) != 0)
      if (const result<> done = put(key, random()); !done) return done;
  return {};
}

}  // namespace stele::bench
