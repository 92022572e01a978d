// How containers store keys and values: a storable value in a field, a stele container as itself.
//
//   struct point {  // a key: storable, ordered, and without padding, so it has a hash
//     std::int32_t x, y;
//     auto operator<=>(const point&) const = default;
//   };
//   struct places { using pool_resident = void; stele::hash_map<point, stele::blob<32>> names; };
//
// element<T, Memory> names the form in the pool (`stored`), the type of arguments (`view`) and of
// loaded values (`value`). string.h adds stele::string; its view is std::string_view, its value
// std::string. Hashes are a part of a pool's content: they depend only on the bytes and never
// change between builds.
#pragma once

#include <stele/memory.h>

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace stele {

// Runs the body of a destructor that loads, stores or frees memory of a pool. A destructor cannot
// throw, so an exception in the body (a conflict, a corrupt pointer, no memory) dooms the running
// transaction: it rolls back instead of committing, and update() or read() retries or reports the
// error as if the exception had left their body. The containers' destructors use it.
template <class Body>
void run_destructor(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
    detail::doom_transaction();
  }
}

// N bytes as a value. If N is a multiple of 8, it is aligned to words.
template <std::size_t N>
struct alignas(N % 8 == 0 ? 8 : 1) blob {
  std::byte bytes[N];
  friend bool operator==(const blob&, const blob&) = default;
};

namespace detail {

// Multiplication by the golden ratio, folded so that both low and high bits are usable.
constexpr std::uint64_t hash_word(std::uint64_t x) noexcept {
  x = (x ^ (x >> 32)) * 0x9E3779B97F4A7C15u;
  return x ^ (x >> 32);
}

inline std::uint64_t hash_bytes(const void* from, std::size_t size) noexcept {
  const char* at = static_cast<const char*>(from);
  std::uint64_t hash = size;
  std::uint64_t word = 0;
  for (; size >= 8; at += 8, size -= 8) {
    std::memcpy(&word, at, 8);
    hash = hash_word(std::rotl(hash, 23) ^ word);
  }
  word = 0;
  if (size != 0) std::memcpy(&word, at, size);
  return hash_word(std::rotl(hash, 23) ^ word);
}

[[noreturn]] inline void throw_key_not_found() {
  throw failure({errc::not_found,
                 "map: at() finds no item with this key; insert it first, or look with find()"});
}

inline std::unexpected<error> corrupt_error(std::string what) {
  return std::unexpected(error{errc::corrupt, std::move(what)});
}

}  // namespace detail

// The hash of a key. Specialize it for types whose equal values differ in bytes.
template <class K>
struct hash {
  static_assert(std::has_unique_object_representations_v<K>,
                "specialize stele::hash for a key with padding or several zeros");
  std::uint64_t operator()(const K& key) const noexcept {
    if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
      return detail::hash_word(static_cast<std::uint64_t>(key));
    } else {
      return detail::hash_bytes(&key, sizeof key);
    }
  }
};

template <class T, class Memory>
struct element {
  static_assert(storable_value<T> || std::is_pointer_v<T>,
                "a container holds storable values (numbers, trivially copyable structs), strings "
                "and containers of stele; a struct of fields and containers says "
                "`using pool_resident = void;`");
  // Copied as bytes: a field's by-value calls would copy it twice.
  static constexpr bool large = sizeof(T) > 64;
  using stored = typename Memory::template field<T>;
  using view = std::conditional_t<large, const T&, T>;
  using value = T;

  static T get(const stored& from) {
    if constexpr (large) {
      T v;
      Memory::load_bytes(&v, &from, sizeof(T));
      return v;
    } else {
      return from.load();
    }
  }
  static void assign(stored& to, const T& v) {
    if constexpr (large) {
      Memory::store_bytes(&to, &v, sizeof(T));
    } else {
      to.store(v);
    }
  }
  // `at`: memory of unknown content.
  static void create(stored* at, const T& v) { assign(*at, v); }
  // Moves the value of `from` to `to`, memory of unknown content; `from` then has unknown content.
  // Allocates nothing.
  static void relocate(stored* to, stored& from) { assign(*to, get(from)); }

  static bool equal(const stored& s, const T& v) { return get(s) == v; }
  static auto compare(const T& v, const stored& s) { return v <=> get(s); }
  static std::uint64_t hash_of(const T& v) { return stele::hash<T>{}(v); }
  static std::uint64_t hash_stored(const stored& s) { return hash_of(get(s)); }
  template <class Visit>
  static void visit_blocks(const stored&, Visit&) {}
};

// A container inside a container: accessed by reference, created empty.
template <class T, class Memory>
  requires requires { typename T::pool_resident; }
struct element<T, Memory> {
  using stored = T;
  using view = const T&;
  using value = const T&;

  static value get(const stored& from) { return from; }
  template <class Visit>
  static void visit_blocks(const stored& s, Visit& visit) {
    s.visit_blocks(visit);
  }
};

// The item that a map's iterator refers to.
template <class K, class V, class Memory>
struct map_item {
  using pool_resident = void;
  using key_element = element<K, Memory>;
  using mapped_element = element<V, Memory>;

  const typename key_element::stored first;
  [[no_unique_address]] typename mapped_element::stored second;  // takes no bytes in sets

  map_item(typename key_element::view key, typename mapped_element::view value) : first(key) {
    mapped_element::create(&second, value);
  }
  explicit map_item(typename key_element::view key) : first(key) {
    Memory::template require_members<typename mapped_element::stored>();
    if constexpr (!std::is_empty_v<typename mapped_element::stored>)
      Memory::fill_zero(&second, sizeof second);
  }
};

// The items of a container from `first` to before `last`, for a loop.
template <class Iterator>
struct item_range {
  Iterator first, last;
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
  bool empty() const { return first == last; }
};

}  // namespace stele
