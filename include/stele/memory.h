// Memory policies of containers: pool_memory (the pool of the running transaction) and plain_memory
// (new and delete).
//
//   stele::basic_vector<int, stele::plain_memory> plain{};  // <stele/vector.h>, ordinary memory
//   plain.push_back(42);
//   struct root { using pool_resident = void; stele::basic_vector<int, stele::pool_memory> v; };
//   auto pool = stele::pool<root>::open("vector.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](root& r) { r.v.push_back(42); });  // the same code, in a pool
//
// A container is a template over a policy, so the same code runs on a pool and on ordinary memory,
// where it serves for upper bounds of speed and for property tests. A policy guarantees:
// make_array() and make() without arguments return zeroed memory; values are accessed only through
// field<T>, byte ranges only through load_bytes and store_bytes; destroy() may load fields. Call
// pool_memory's functions in an update. Without space they throw failure(errc::full), and the
// transaction is rolled back. plain_memory throws std::bad_alloc. A third policy, which places data
// by lines, is in coalescing.h.
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

  // Unlike stele::make_array, this accepts containers: zeroed memory is an empty container.
  template <class T>
  static T* make_array(std::size_t count) {
    return make_array_in<pool_memory, T>(count);
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
  static void deallocate(void* block) {  // null does nothing
    if (block != nullptr) detail::deallocate(block);
  }
  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    stele::load_bytes(to, from, size_bytes);
  }
  static void store_bytes(void* to, const void* from, std::size_t size_bytes) {
    stele::store_bytes(to, from, size_bytes);
  }
  static void fill_zero(void* to, std::size_t size_bytes) { detail::fill_zero(to, size_bytes); }
  // Does not compile if a T has members that a transaction would not see.
  template <class T>
  static constexpr void require_members() {
    detail::require_pool_members<T>();
  }
  // Starts loading the line that holds `at`; any address is allowed.
  static void prefetch(const void* at) noexcept { detail::prefetch(at); }
  // Of the running transaction's pool.
  static std::size_t pool_bytes() noexcept { return detail::this_access.size; }
  // Throws failure(errc::corrupt) if the range is not in the heap.
  [[gnu::always_inline]] static void verify_in_heap(const void* from, std::size_t size_bytes) {
    detail::verify_in_running_heap(from, size_bytes);
  }

 protected:
  static constexpr std::size_t max_bytes = std::size_t{1} << 46;

  // make_array() of a memory that allocates in its own way.
  template <class Memory, class T>
  static T* make_array_in(std::size_t count) {
    static_assert(pool_object<T>,
                  "an array in a pool holds plain structs of fields, or stele containers");
    require_members<T>();
    if (count > max_bytes / sizeof(T))
      throw failure(
          {errc::full, "an array of " + std::to_string(count) + " elements does not fit a pool"});
    void* block = Memory::allocate(count * sizeof(T), alignof(T) > 8 ? alignof(T) : 8);
    fill_zero(block, count * sizeof(T));
    return static_cast<T*>(block);
  }
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

// Walks along the links of a memory whose content is trusted.
struct unchecked_chain {
  void step(const void*) const noexcept {}
};
// An object in ordinary memory with which a container moves another one.
struct unchecked_local {
  unchecked_local(const void*, std::size_t) noexcept {}
};
// What a memory whose content is not trusted has instead.
template <class Memory>
struct checks_of {
  using chain = unchecked_chain;
  using local = unchecked_local;
  static constexpr bool guarded = false;
};
template <class Memory>
  requires requires { typename Memory::chain_check; }
struct checks_of<Memory> {
  using chain = typename Memory::chain_check;
  using local = typename Memory::local_object;
  static constexpr bool guarded = true;
};
template <class Memory>
using chain_check = typename checks_of<Memory>::chain;
template <class Memory>
inline constexpr bool is_guarded = checks_of<Memory>::guarded;

// The block that make() allocated for an object, for visit_blocks. A memory that does not place
// objects at the start of their blocks provides a function for it.
template <class Memory, class T>
const void* block_of(const T* object) {
  if constexpr (requires { Memory::block_of(object); }) {
    return Memory::block_of(object);
  } else {
    return object;
  }
}

}  // namespace detail

// The field for a word in which a container packs the distance to an object with its own bits. A
// memory that must know where pointers are provides a type link<Word>; other memories use an
// ordinary field.
template <class Memory, class Word>
using link_field = typename detail::link_word<Memory, Word>::type;

// field<T> in ordinary memory: the same operations, without routing.
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

 private:
  T value_;
};

template <class T>
inline constexpr bool detail::is_value_field<plain_field<T>> = !std::is_pointer_v<T>;

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
  template <class T>
  static constexpr void require_members() {}
  static void prefetch(const void* at) noexcept { __builtin_prefetch(at); }
};

}  // namespace stele
