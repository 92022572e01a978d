// field<T>: a T that lives in a pool. Its loads and stores go to the running transaction.
//
//   struct node { stele::field<std::uint64_t> key; stele::field<node*> next; };
//   auto* n = stele::make<node>();  // in an update: all fields are zero or null
//   n->key = n->key + 1;            // as with an ordinary member
//   n->next = n;                    // a pointer field takes and gives ordinary pointers
//   n->next->key += 1;             // all operators of an ordinary number, ++ too
//
// Invariants: a field has the size and alignment of its T (a pointer field: 8 bytes) and holds no
// address. Copying a field loads one and stores the other; the compiler never copies its bytes. A
// pointer field holds the distance from the field to its target, so a pool can be mapped at any
// address. The default constructor does not change the field's bytes.
//
// A load or store may throw to end the transaction's attempt; pool::update retries it after a
// conflict. So a body must not swallow unknown exceptions and must not access fields in noexcept
// functions. Outside a transaction a load reads memory directly, even while another thread writes
// it, and a store to a pool ends the program, because a crash could tear it. A field in ordinary
// memory behaves as an ordinary variable. Compiled with STELE_DEBUG, foreign pointers and uses of
// destroyed objects are errors (docs/guide/debug.md).
#pragma once

#include <stele/detail/access.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace stele {

// What a field may hold: bytes that have the same meaning in another process.
template <class T>
concept storable_value =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_reference_v<T> &&
    !std::is_polymorphic_v<T> && !std::is_member_pointer_v<T> && !std::is_const_v<T> &&
    !std::is_volatile_v<T>;

template <class T>
class field {
  static_assert(storable_value<T>,
                "a field holds a trivially copyable value: no std::string or other owner of memory "
                "(use stele's containers), no "
                "reference, no class with virtual functions, no pointer inside (use field<T*>)");

 public:
  using value_type = T;

  field() noexcept = default;
  field(T value) { store(value); }
  field(const field& other) { store(other.load()); }
  field& operator=(T value) {
    store(value);
    return *this;
  }
  field& operator=(const field& other) {
    store(other.load());
    return *this;
  }

  [[nodiscard, gnu::always_inline]] T load() const {
    detail::check_use(this);
    return detail::load(&value_);
  }
  void store(T value) {
    detail::check_use(this);
    detail::store(&value_, value);
  }
  operator T() const { return load(); }

 private:
  T value_;
};

// A pointer to an object in the same pool, or null. In a transaction a load of one that leads out
// of its pool's heap, as in a file that somebody has made up, throws failure(errc::corrupt).
template <class T>
class field<T*> {
 public:
  using value_type = T*;

  field() noexcept = default;
  field(T* target) { store(target); }
  field(std::nullptr_t) { store(nullptr); }
  field(const field& other) { store(other.load()); }
  field& operator=(T* target) {
    store(target);
    return *this;
  }
  field& operator=(const field& other) {
    store(other.load());
    return *this;
  }

  [[nodiscard, gnu::always_inline]] T* load() const {
    detail::check_use(this);
    const std::int64_t distance = detail::load(&distance_);
    if (distance == null_distance) return nullptr;
    return reinterpret_cast<T*>(
        detail::target_in_heap(this, distance == self_distance ? 0 : distance));
  }
  void store(T* target) {
    detail::check_target(this, target);
    const auto distance =
        reinterpret_cast<std::intptr_t>(target) - reinterpret_cast<std::intptr_t>(this);
    detail::store(&distance_, target == nullptr ? null_distance
                              : distance == 0   ? self_distance
                                                : std::int64_t{distance});
  }
  operator T*() const { return load(); }
  T* operator->() const { return load(); }
  template <class U = T>
    requires(!std::is_void_v<U>)
  U& operator*() const {
    return *load();
  }

 private:
  static constexpr std::int64_t null_distance = 0;
  // A field that points at itself. No object starts one byte into a field, so this value is free.
  static constexpr std::int64_t self_distance = 1;
  std::int64_t distance_;
};

namespace detail {

// A field of a value that is no pointer, in a pool or in ordinary memory.
template <class F>
inline constexpr bool is_value_field = false;
template <class T>
inline constexpr bool is_value_field<field<T>> = !std::is_pointer_v<T>;
template <class F>
concept value_field = is_value_field<F>;

template <class F, class Operation>
F& change(F& f, Operation&& operation) {
  f.store(static_cast<typename F::value_type>(operation(f.load())));
  return f;
}

}  // namespace detail

// The operators that change a value: one load and one store.
template <detail::value_field F>
  requires requires(typename F::value_type a) { a + a; }
F& operator+=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v + by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a - a; }
F& operator-=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v - by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a* a; }
F& operator*=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v * by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a / a; }
F& operator/=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v / by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a % a; }
F& operator%=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v % by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a & a; }
F& operator&=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v & by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a | a; }
F& operator|=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v | by; });
}
template <detail::value_field F>
  requires requires(typename F::value_type a) { a ^ a; }
F& operator^=(F& f, typename F::value_type by) {
  return detail::change(f, [&](auto v) { return v ^ by; });
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
F& operator<<=(F& f, unsigned bits) {
  return detail::change(f, [&](auto v) { return v << bits; });
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
F& operator>>=(F& f, unsigned bits) {
  return detail::change(f, [&](auto v) { return v >> bits; });
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
F& operator++(F& f) {
  return detail::change(f, [](auto v) { return v + 1; });
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
typename F::value_type operator++(F& f, int) {
  const auto before = f.load();
  ++f;
  return before;
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
F& operator--(F& f) {
  return detail::change(f, [](auto v) { return v - 1; });
}
template <detail::value_field F>
  requires std::integral<typename F::value_type>
typename F::value_type operator--(F& f, int) {
  const auto before = f.load();
  --f;
  return before;
}

// Copy `size` bytes between pool and ordinary memory through the running transaction, for byte
// ranges that no single field describes. The same rules as for a field's load and store.
inline void load_bytes(void* to, const void* from, std::size_t size) {
  detail::check_use(from);
  detail::load_range(from, to, size);
}
inline void store_bytes(void* to, const void* from, std::size_t size) {
  detail::check_use(to);
  detail::store_range(to, from, size);
}

}  // namespace stele
