// Values of a given size, made from one word and made into a digest; and types chosen by a size known at run time.
#pragma once

#include <stele/element.h>
#include <workloads/workload.h>

#include <cstring>
#include <memory>
#include <vector>

namespace stele::workloads {

// Fills size_bytes, a multiple of 8, with the word.
inline void fill_with(void* to, std::size_t size_bytes, std::uint64_t word) {
  for (std::size_t i = 0; i < size_bytes; i += 8) std::memcpy(static_cast<char*>(to) + i, &word, 8);
}

template <std::size_t N>
blob<N> blob_of(std::uint64_t word) {
  blob<N> b;
  fill_with(b.bytes, N, word);
  return b;
}

// The part of one item in a digest that is a sum over items, so independent of their order.
inline std::uint64_t digest_item(std::uint64_t key, const void* value, std::size_t size_bytes) {
  return base::mix(base::mix(key) ^ detail::hash_bytes(value, size_bytes));
}

// The same for a value that is the word over and over.
inline std::uint64_t digest_word(std::uint64_t key, std::uint64_t word, std::size_t size_bytes) {
  std::vector<std::byte> value(size_bytes);
  fill_with(value.data(), size_bytes, word);
  return digest_item(key, value.data(), size_bytes);
}

// Makes the compiler take the value as used, so that reading it is not optimized away.
template <class T>
void use(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// A Run<Kind<value size>>. The size is a power of two from 8 to 4096.
template <class Base, template <class> class Run, template <std::size_t> class Kind, std::size_t N = 8>
std::unique_ptr<Base> make_sized(const parameters& p) {
  if constexpr (N < 4096) {
    if (p.value_size != N) return make_sized<Base, Run, Kind, 2 * N>(p);
  }
  return std::make_unique<Run<Kind<N>>>(p);
}

}  // namespace stele::workloads
