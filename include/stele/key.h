// key::of: keys of a key-value store from numbers, texts and sequences of them, whose order as
// bytes is the order of the values.
//
//   auto store = stele::kv::open("sensors.stele", {.create_size = 16 << 20});
//   auto put = store->put(stele::key::of("sensor", -7, 3.5), "reading");
//   auto c = store->walk_prefix(stele::key::of("sensor", -7));  // all readings of sensor -7
//   while (c.next().value())
//     if (auto k = stele::key::parse<std::string, int, double>(c.key()))
//       std::printf("%g: %s\n", std::get<2>(*k), c.value().c_str());
//
// Of two keys of the same types the first part that differs decides. An integer takes its own size,
// big-endian, with the sign bit flipped if it is signed; so the keys of one place are of one type.
// A double takes 8 bytes: positive ones with the sign bit flipped, negative ones with all bits
// flipped; -0 is before 0, NaNs are at the ends. A text ends with two zero bytes; a zero byte in it
// is followed by 0xFF. So a text is before its extensions, whatever follows, and the key of the
// first parts is a prefix of the key of all. docs/decisions/33-keys.md says why there is no
// comparator.
//
// Thread-safe; throw only std::bad_alloc.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stele::key {

namespace detail {

template <class T>
concept number = (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, double>;

template <number T>
auto ordered_bits(T value) {
  if constexpr (std::same_as<T, double>) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
  } else {
    using word = std::make_unsigned_t<T>;
    const auto sign =
        static_cast<word>(std::signed_integral<T> ? word{1} << (sizeof(T) * 8 - 1) : 0);
    return static_cast<word>(static_cast<word>(value) ^ sign);
  }
}
template <number T, class Word>
T value_of(Word bits) {
  if constexpr (std::same_as<T, double>)
    return std::bit_cast<double>(bits >> 63 != 0 ? bits & ~(Word{1} << 63) : ~bits);
  else
    return static_cast<T>(ordered_bits(static_cast<T>(bits)));  // the flip is its own inverse
}

template <number T>
void append(std::string& to, T value) {
  const auto bits = ordered_bits(value);
  for (std::size_t i = sizeof bits; i-- != 0;)
    to += static_cast<char>(static_cast<std::uint64_t>(bits) >> i * 8 & 255);
}
inline void append(std::string& to, std::string_view text) {
  for (const char c : text) {
    to += c;
    if (c == '\0') to += '\xFF';
  }
  to.append(2, '\0');
}

template <number T>
bool take(std::string_view& from, T& value) {
  if (from.size() < sizeof(T)) return false;
  using word = decltype(ordered_bits(T{}));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits = bits << 8 | static_cast<unsigned char>(from[i]);
  value = value_of<T>(static_cast<word>(bits));
  from.remove_prefix(sizeof(T));
  return true;
}
inline bool take(std::string_view& from, std::string& text) {
  for (;;) {
    const std::size_t zero = from.find('\0');
    if (zero == from.npos || zero + 1 == from.size()) return false;
    const char after = from[zero + 1];
    text.append(from.substr(0, zero + (after != '\0')));
    from.remove_prefix(zero + 2);
    if (after == '\0') return true;
    if (after != '\xFF') return false;
  }
}

}  // namespace detail

// Parts are integers, doubles, and what converts to std::string_view.
template <class... Parts>
[[nodiscard]] std::string of(const Parts&... parts) {
  std::string made;
  (detail::append(made, parts), ...);
  return made;
}

// The parts of a key that of() has made of such types; std::string for texts. Empty: it has not.
template <class... Parts>
[[nodiscard]] std::optional<std::tuple<Parts...>> parse(std::string_view key) {
  std::tuple<Parts...> parts;
  const bool all = std::apply(
      [&](Parts&... part) { return (detail::take(key, part) && ...) && key.empty(); }, parts);
  return all ? std::optional(std::move(parts)) : std::nullopt;
}

}  // namespace stele::key
