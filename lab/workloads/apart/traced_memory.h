// traced_memory: memory for containers in which every access is an event on a tape, without
// persistence; and phantom values.
//
// The twin of plain_memory in a native_space. A pointer is stored as its target's address in the
// space. The field of a pointer, or of a container's packed link, marks its loads on the tape as
// loads of pointers. A phantom<N> is a value of N bytes that repeats one word: it is accessed as N
// bytes, but only its first word is stored, unless the space keeps whole values.
#pragma once

#include <stele/element.h>
#include <workloads/apart/native_space.h>
#include <workloads/value.h>

#include <concepts>
#include <cstring>
#include <new>
#include <type_traits>

namespace stele::workloads {

// A loaded T.
template <class T, bool Link>
class traced_word {
 public:
  using value_type = T;

  traced_word() noexcept = default;
  traced_word(T value) { store(value); }
  traced_word(const traced_word& other) { store(other.load()); }
  traced_word& operator=(T value) {
    store(value);
    return *this;
  }
  traced_word& operator=(const traced_word& other) {
    store(other.load());
    return *this;
  }

  [[nodiscard]] T load() const {
    native_space& space = native_space::current();
    if constexpr (Link) {
      space.loaded_pointer(this, sizeof(T));
    } else {
      space.loaded(this, sizeof(T));
    }
    return value_;
  }
  void store(T value) {
    value_ = value;
    native_space::current().stored(this, sizeof(T));
  }
  operator T() const { return load(); }

  traced_word& operator+=(T by)
    requires requires(T a) { a + a; }
  {
    store(static_cast<T>(load() + by));
    return *this;
  }
  traced_word& operator-=(T by)
    requires requires(T a) { a - a; }
  {
    store(static_cast<T>(load() - by));
    return *this;
  }

 private:
  T value_;
};

// A pointer into the space, or null.
template <class T>
class traced_pointer {
 public:
  using value_type = T*;

  traced_pointer() noexcept = default;
  traced_pointer(T* target) { store(target); }
  traced_pointer& operator=(T* target) {
    store(target);
    return *this;
  }

  [[nodiscard]] T* load() const {
    const std::uint64_t address = address_.load();
    return address == 0 ? nullptr : reinterpret_cast<T*>(native_space::current().base() + address);
  }
  void store(T* target) {
    address_ = target == nullptr ? 0
                                 : static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(target) -
                                                              native_space::current().base());
  }
  operator T*() const { return load(); }
  T* operator->() const { return load(); }

 private:
  traced_word<std::uint64_t, true> address_;
};

struct traced_memory {
  template <class T>
  using field = std::conditional_t<std::is_pointer_v<T>, traced_pointer<std::remove_pointer_t<T>>,
                                   traced_word<T, false>>;
  template <class Word>
  using link = traced_word<Word, true>;

  template <class T, class... Arguments>
  static T* make(Arguments&&... arguments) {
    void* const block = allocate(sizeof(T), alignof(T));
    T* object = nullptr;
    if constexpr (sizeof...(Arguments) == 0) {
      fill_zero(block, sizeof(T));
      object = static_cast<T*>(block);
      if constexpr (!std::is_trivially_default_constructible_v<T>) object = ::new (block) T;
    } else {
      object = ::new (block) T(std::forward<Arguments>(arguments)...);
    }
    // The compiler must keep the zeroes stored before the constructor: they are the fields' values.
    asm volatile("" : "+r"(object) : : "memory");
    return object;
  }
  template <class T>
  static void destroy(T* object) {
    object->~T();
    deallocate(object);
  }
  template <class T>
  static T* make_array(std::size_t count) {
    void* const block = allocate(count * sizeof(T), alignof(T));
    fill_zero(block, count * sizeof(T));
    return static_cast<T*>(block);
  }
  template <class T>
  static void destroy_array(T* first, std::size_t count) {
    if (first == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) first[i].~T();
    deallocate(first);
  }

  static void* allocate(std::size_t size_bytes, std::size_t alignment) {
    return native_space::current().allocate(size_bytes, alignment);
  }
  static void deallocate(void* block) {
    if (block != nullptr) native_space::current().deallocate(block);
  }
  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    std::memcpy(to, from, size_bytes);
    native_space::current().loaded(from, size_bytes);
  }
  static void store_bytes(void* to, const void* from, std::size_t size_bytes) {
    std::memcpy(to, from, size_bytes);
    native_space::current().stored(to, size_bytes);
  }
  static void fill_zero(void* to, std::size_t size_bytes) {
    native_space::current().fill_zero(to, size_bytes);
  }
  static void prefetch(const void*) noexcept {}  // simulated processors do not prefetch
};

template <std::size_t N>
struct phantom {
  std::uint64_t word = 0;
};

template <std::size_t N>
struct phantom_stored {
  phantom_stored() noexcept {}  // leaves the bytes as they are
  alignas(8) std::byte bytes[N];
};

template <std::size_t N>
struct value_for<N, traced_memory> {
  using type = phantom<N>;
};

template <std::size_t N>
void set_word(phantom<N>& to, std::uint64_t word) {
  to.word = word;
}
template <std::size_t N>
std::uint64_t digest_value(std::uint64_t key, const phantom<N>& value) {
  return digest_word(key, value.word, N);
}

}  // namespace stele::workloads

namespace stele {

template <std::size_t N>
struct element<workloads::phantom<N>, workloads::traced_memory> {
  using stored = workloads::phantom_stored<N>;
  using view = workloads::phantom<N>;
  using value = workloads::phantom<N>;

  static value get(const stored& from) {
    value v;
    std::memcpy(&v.word, from.bytes, 8);
    workloads::native_space::current().loaded(from.bytes, N);
    return v;
  }
  static void assign(stored& to, view v) {
    auto& space = workloads::native_space::current();
    workloads::fill_with(to.bytes, space.whole_values() ? N : 8, v.word);
    space.stored(to.bytes, N);
  }
  static void create(stored* at, view v) { assign(*at, v); }
  template <class Visit>
  static void visit_blocks(const stored&, Visit&) {}
};

}  // namespace stele

namespace stele::workloads {

template <std::size_t N>
phantom<N> stored_value(const phantom_stored<N>& stored) {
  return element<phantom<N>, traced_memory>::get(stored);
}

}  // namespace stele::workloads
