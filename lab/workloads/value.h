// Values of a given size that repeat one word, and their digests; also types chosen by a size that
// is known at run time.
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

// The type of a value of N bytes in a memory; it may differ between memories.
template <std::size_t N, class Memory>
struct value_for {
  using type = blob<N>;
};
template <std::size_t N, class Memory>
using value_of_size = typename value_for<N, Memory>::type;

template <std::size_t N>
void set_word(blob<N>& to, std::uint64_t word) {
  fill_with(to.bytes, N, word);
}
// A value that repeats the word.
template <class Value>
Value value_from(std::uint64_t word) {
  Value v;
  set_word(v, word);
  return v;
}

template <std::size_t N>
blob<N> stored_value(const field<blob<N>>& stored) {
  return element<blob<N>, pool_memory>::get(stored);
}
template <std::size_t N>
blob<N> stored_value(const blob<N>& loaded) {
  return loaded;
}
template <std::size_t N>
blob<N> stored_value(const plain_field<blob<N>>& stored) {
  return element<blob<N>, plain_memory>::get(stored);
}

// The part of one item in a digest. A digest is a sum over items, so it does not depend on their
// order.
inline std::uint64_t digest_item(std::uint64_t key, const void* value, std::size_t size_bytes) {
  return base::mix(base::mix(key) ^ detail::hash_bytes(value, size_bytes));
}

template <std::size_t N>
std::uint64_t digest_value(std::uint64_t key, const blob<N>& value) {
  return digest_item(key, value.bytes, N);
}

// The same for a value that repeats the word.
inline std::uint64_t digest_word(std::uint64_t key, std::uint64_t word, std::size_t size_bytes) {
  std::vector<std::byte> value(size_bytes);
  fill_with(value.data(), size_bytes, word);
  return digest_item(key, value.data(), size_bytes);
}

// Makes the compiler treat the value as used, so that reading it is not optimized away.
template <class T>
void do_not_optimize(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// Makes a Run whose type does not depend on the value size.
template <class Base, class Run>
std::unique_ptr<Base> make_run(const parameters& p) {
  return std::make_unique<Run>(p);
}

// Makes a Run<Kind<value size>>, with the kind's object made from `more` if given. The size is a
// power of two from 8 to 4096.
template <class Base, template <class> class Run, template <std::size_t> class Kind,
          std::size_t N = 8, class... More>
std::unique_ptr<Base> make_sized(const parameters& p, const More&... more) {
  if constexpr (N < 4096) {
    if (p.value_size != N) return make_sized<Base, Run, Kind, 2 * N>(p, more...);
  }
  return std::make_unique<Run<Kind<N>>>(p, more...);
}

}  // namespace stele::workloads
