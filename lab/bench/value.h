// Initial content and values of the workloads, for contenders that do not use Stele's containers.
#pragma once

#include <stele/error.h>
#include <workloads/key_space.h>
#include <workloads/value.h>

#include <cstdint>

namespace stele::bench {

using workloads::fill_with;

// Reads all words of a value, as a reader that copies it.
inline void read_value(const void* from, std::size_t size) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size / 8; ++i) sum += static_cast<const std::uint64_t*>(from)[i];
  asm volatile("" : : "r"(sum));
}

// Calls put(key, word) for the keys that a map holds at the start, in the workloads' order.
template <class Put>
[[nodiscard]] result<> fill_half(const workloads::parameters& p, Put put) {
  const workloads::key_space keys(p);
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t key = keys.scattered(i);
    if (!keys.present_at_start(key)) continue;
    if (const result<> done = put(key, keys.word_at_start(key)); !done) return done;
  }
  return {};
}

}  // namespace stele::bench
