// field<T>: a T that lives in a pool. Loads and stores go to the running transaction.
//
// Invariants: a field has the size and alignment of its T (a pointer's is 8 bytes), holds no
// address, and is never touched by the compiler's own copies: copying a field loads one and stores
// the other. A pointer is kept as the distance from the field to its target, so a pool maps at any
// address. The default constructor leaves a field alone; make<T>() gives zeroed memory, so every
// field of a fresh object is zero or null.
//
// A load or store may end the running attempt of a transaction with an exception (a conflict is
// retried by pool::update). Do not swallow foreign exceptions in a transaction, and do not access
// fields in noexcept functions there. Outside a transaction a load reads memory as it is (another
// thread may be writing it) and a store into a pool ends the program: it would be torn by a crash.
// A field in ordinary memory is an ordinary variable.
#pragma once

#include <stele/access.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace stele {

// What a field may hold: bytes that mean the same in another process.
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

  [[nodiscard, gnu::always_inline]] T load() const { return detail::load(&value_); }
  void store(T value) { detail::store(&value_, value); }
  operator T() const { return load(); }

  field& operator+=(T by)
    requires requires(T a) { a + a; }
  {
    store(static_cast<T>(load() + by));
    return *this;
  }
  field& operator-=(T by)
    requires requires(T a) { a - a; }
  {
    store(static_cast<T>(load() - by));
    return *this;
  }
  field& operator++()
    requires std::integral<T>
  {
    return *this += T{1};
  }
  field& operator--()
    requires std::integral<T>
  {
    return *this -= T{1};
  }

 private:
  T value_;
};

// A pointer to an object in the same pool, or null.
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
    const std::int64_t distance = detail::load(&distance_);
    if (distance == null_distance) return nullptr;
    const auto here = reinterpret_cast<std::intptr_t>(this);
    return reinterpret_cast<T*>(here + (distance == self_distance ? 0 : distance));
  }
  void store(T* target) {
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
  static constexpr std::int64_t self_distance =
      1;  // a field that points at itself; no object starts one byte into a field
  std::int64_t distance_;
};

// Copies of `size` bytes between pool and ordinary memory, through the running transaction: for
// runs of bytes that no single field describes. Same rules as field's load and store.
inline void load_bytes(void* to, const void* from, std::size_t size) {
  detail::load_range(from, to, size);
}
inline void store_bytes(void* to, const void* from, std::size_t size) {
  detail::store_range(to, from, size);
}

}  // namespace stele
