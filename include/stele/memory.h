// Where a container's memory comes from: pool_memory (the pool of the running transaction) or
// plain_memory (new and delete).
//
// A container is a template over one of these, so the very same code runs on a pool and, as a twin
// for ceilings and property tests, on ordinary memory. Invariants that a policy gives its
// container: make_array() and make() without arguments return zeroed memory; field<T> is the only
// way to a value, load_bytes and store_bytes the only way to runs of bytes; destroy() may load
// fields. pool_memory's functions belong inside an update; on lack of space they throw
// failure(errc::full), and what the transaction did is rolled back with it. plain_memory throws
// std::bad_alloc. A third one, which places by lines, is in coalescing.h.
#pragma once

#include <stele/pool.h>

#include <concepts>
#include <cstring>
#include <new>
#include <utility>

namespace stele {

struct pool_memory {
  template <class T>
  using field = stele::field<T>;

  template <class T, class... Arguments>
  static T* make(Arguments&&... arguments) {
    return stele::make<T>(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  static void destroy(T* object) {
    stele::destroy(object);
  }

  // Unlike stele::make_array, takes containers too: zeroed memory is an empty one.
  template <class T>
  static T* make_array(std::size_t count) {
    static_assert(pool_object<T>,
                  "an array in a pool holds plain structs of fields, or stele containers");
    if (count > max_bytes / sizeof(T))
      throw failure(
          {errc::full, "an array of " + std::to_string(count) + " elements does not fit a pool"});
    void* block = allocate(count * sizeof(T), alignof(T) > 8 ? alignof(T) : 8);
    fill_zero(block, count * sizeof(T));
    return static_cast<T*>(block);
  }
  template <class T>
  static void destroy_array(T* first, std::size_t count) {
    if (first == nullptr) return;
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (std::size_t i = 0; i < count; ++i) first[i].~T();
    }
    deallocate(first);
  }

  static void* allocate(std::size_t size_bytes, std::size_t alignment) {
    return detail::allocate(size_bytes, alignment);
  }
  static void deallocate(void* block) {  // null is nothing
    if (block != nullptr) detail::deallocate(block);
  }
  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    stele::load_bytes(to, from, size_bytes);
  }
  static void store_bytes(void* to, const void* from, std::size_t size_bytes) {
    stele::store_bytes(to, from, size_bytes);
  }
  static void fill_zero(void* to, std::size_t size_bytes) { detail::fill_zero(to, size_bytes); }
  // Throws failure(errc::corrupt) for what does not lie in the heap.
  [[gnu::always_inline]] static void verify_in_heap(const void* from, std::size_t size_bytes) {
    detail::verify_in_running_heap(from, size_bytes);
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{1} << 46;
};

namespace detail {

template <class Memory, class Word>
struct link_word {
  using type = typename Memory::template field<Word>;
};
template <class Memory, class Word>
  requires requires { typename Memory::template link<Word>; }
struct link_word<Memory, Word> {
  using type = typename Memory::template link<Word>;
};

// The block that make() has allocated for an object, for visit_blocks. A memory that places objects
// elsewhere than at a block's beginning names a function for it.
template <class Memory, class T>
const void* block_of(const T* object) {
  if constexpr (requires { Memory::block_of(object); }) {
    return Memory::block_of(object);
  } else {
    return object;
  }
}

}  // namespace detail

// The field for a word in which a container packs the distance to an object with bits of its own. A
// memory that has to know where pointers are names a type for it, link<Word>; to the others it is a
// field like any.
template <class Memory, class Word>
using link_field = typename detail::link_word<Memory, Word>::type;

// The plain twin of field<T>: same operations, no routing.
template <class T>
class plain_field {
 public:
  using value_type = T;

  plain_field() noexcept = default;
  plain_field(T value) : value_(value) {}
  plain_field& operator=(T value) {
    value_ = value;
    return *this;
  }

  [[nodiscard]] T load() const { return value_; }
  void store(T value) { value_ = value; }
  operator T() const { return value_; }
  T operator->() const
    requires std::is_pointer_v<T>
  {
    return value_;
  }

  plain_field& operator+=(T by)
    requires requires(T a) { a + a; }
  {
    value_ = static_cast<T>(value_ + by);
    return *this;
  }
  plain_field& operator-=(T by)
    requires requires(T a) { a - a; }
  {
    value_ = static_cast<T>(value_ - by);
    return *this;
  }
  plain_field& operator++()
    requires std::integral<T>
  {
    return *this += T{1};
  }
  plain_field& operator--()
    requires std::integral<T>
  {
    return *this -= T{1};
  }

 private:
  T value_;
};

struct plain_memory {
  template <class T>
  using field = plain_field<T>;

  template <class T, class... Arguments>
  static T* make(Arguments&&... arguments) {
    return new T(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  static void destroy(T* object) {
    delete object;
  }
  template <class T>
  static T* make_array(std::size_t count) {
    return new T[count]();
  }
  template <class T>
  static void destroy_array(T* first, std::size_t) {
    delete[] first;
  }

  static void* allocate(std::size_t size_bytes, std::size_t) { return ::operator new(size_bytes); }
  static void deallocate(void* block) { ::operator delete(block); }
  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    std::memcpy(to, from, size_bytes);
  }
  static void store_bytes(void* to, const void* from, std::size_t size_bytes) {
    std::memcpy(to, from, size_bytes);
  }
  static void fill_zero(void* to, std::size_t size_bytes) { std::memset(to, 0, size_bytes); }
};

}  // namespace stele
