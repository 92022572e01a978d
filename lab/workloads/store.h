// Keys and values of the workload `store`, for everything that runs it: Stele's key-value store,
// its models, its rivals.
//
// Keys are 8 bytes without order. A value has the requested size and repeats one word. The store
// starts seven eighths full and stays so: one change in eight erases, the others put.
#pragma once

#include <workloads/key_space.h>
#include <workloads/value.h>

#include <array>
#include <string>
#include <string_view>

namespace stele::workloads::store {

inline constexpr std::size_t largest_value = std::size_t{1} << 20;
inline constexpr std::size_t key_bytes = 8;

class key {
 public:
  explicit key(std::uint64_t number) {
    const std::uint64_t bits = detail::hash_word(number);  // a bijection
    std::memcpy(bytes_.data(), &bits, key_bytes);
  }
  operator std::string_view() const { return {bytes_.data(), key_bytes}; }

 private:
  std::array<char, key_bytes> bytes_;
};

// The value made from a word. `to` is the buffer; its memory is reused from call to call.
inline std::string_view value(std::uint64_t word, std::size_t size_bytes, std::string& to) {
  to.resize(size_bytes);
  const std::size_t whole = size_bytes / 8 * 8;
  fill_with(to.data(), whole, word);
  std::memcpy(to.data() + whole, &word, size_bytes - whole);
  return to;
}

inline bool present_at_start(const key_space& keys, std::uint64_t number) {
  return base::mix(keys.params().seed ^ base::mix(number)) % 8 != 0;
}

inline operation draw(const key_space& keys, base::rng& random) {
  if (keys.draws_read(random)) return {operation::kind::read, keys.draw(random), 0};
  const std::uint64_t number = keys.draw(random);
  if (random.below(8) == 0) return {operation::kind::erase, number, 0};
  return {operation::kind::put, number, random()};
}

// Calls put(number, word) for each key of the initial store, in an order without locality.
template <class Put>
[[nodiscard]] result<> fill(const parameters& p, Put put) {
  const key_space keys(p);
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t number = keys.scattered(i);
    if (!present_at_start(keys, number)) continue;
    if (result<> done = put(number, keys.word_at_start(number)); !done) return done;
  }
  return {};
}

}  // namespace stele::workloads::store
