// bounded_memory: pool_memory for content that is not trusted, for check() alone.
//
// A container is checked as if it lay in this memory: the same bytes, but a load of anything that
// is not within the heap of the running transaction's pool, or not aligned, throws
// failure(errc::corrupt), and so does a second claim of the same bytes. check() claims each block
// that it is led to, so it visits each once: a walk ends, whatever the links say. Nothing is
// stored.
//
// A claim is known to the bounded_walk of the thread that is alive then; there is one at most,
// inside a transaction.
#pragma once

#include <stele/memory.h>

#include <memory>

namespace stele {

namespace detail {

// Of this thread while it lives: where the content of the running transaction's pool may lie, and
// what of it has been claimed.
class bounded_walk {
 public:
  bounded_walk();
  ~bounded_walk();
  bounded_walk(const bounded_walk&) = delete;
  bounded_walk& operator=(const bounded_walk&) = delete;

 private:
  struct state;
  friend struct claims;
  std::unique_ptr<state> state_;
};

void validate_range(const void* from, std::size_t size_bytes, std::size_t alignment);
void claim_block(const void* block, std::size_t size_bytes);
std::size_t heap_bytes();  // of which a walk may meet no more

// The body's result, or the failure that it threw, as an error: a damaged container ends its check
// so.
template <class Body>
[[nodiscard]] result<> check_bounded(Body&& body) {
  const bounded_walk walk;
  try {
    return body();
  } catch (const failure& f) {
    if (f.why().code != errc::corrupt) throw;
    return std::unexpected(f.why());
  }
}

}  // namespace detail

template <class T>
class bounded_field : public field<T> {
 public:
  using field<T>::field;
  using field<T>::operator=;

  [[nodiscard]] T load() const {
    detail::validate_range(this, sizeof *this, alignof(bounded_field));
    const T value = field<T>::load();
    if constexpr (std::is_pointer_v<T>)
      if (value != nullptr) detail::validate_range(value, 1, target_alignment());
    return value;
  }
  operator T() const { return load(); }
  T operator->() const
    requires std::is_pointer_v<T>
  {
    return load();
  }

 private:
  // Of what a pointer is to; one without a type is to a container's own.
  static constexpr std::size_t target_alignment() {
    using target = std::remove_pointer_t<T>;
    if constexpr (std::is_void_v<target>) {
      return 8;
    } else {
      return alignof(target);
    }
  }
};

struct bounded_memory : pool_memory {
  template <class T>
  using field = bounded_field<T>;

  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    validate(from, size_bytes);
    pool_memory::load_bytes(to, from, size_bytes);
  }
  static void validate(const void* from, std::size_t size_bytes) {
    detail::validate_range(from, size_bytes, 1);
  }
  static void claim(const void* block, std::size_t size_bytes) {
    detail::claim_block(block, size_bytes);
  }
};

namespace detail {

template <class Memory>
inline constexpr bool is_bounded = std::is_same_v<Memory, bounded_memory>;

// Nothing in memories that are trusted.
template <class Memory>
void claim(const void* block, std::size_t size_bytes) {
  if constexpr (is_bounded<Memory>) Memory::claim(block, size_bytes);
}
template <class Memory>
void validate(const void* from, std::size_t size_bytes) {
  if constexpr (is_bounded<Memory>) Memory::validate(from, size_bytes);
}

}  // namespace detail

}  // namespace stele
