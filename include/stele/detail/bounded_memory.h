// bounded_memory: pool_memory for untrusted content. check() of a document or kv store uses it.
//
//   auto pool = stele::pool<stele::document_dict>::open("data.stele");
//   if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
//   auto sound = pool->read([](const stele::document_dict& d) { return d.check(); });
//   if (!sound)  // errc::corrupt, also for pointers that lead anywhere
//     std::fprintf(stderr, "%s\n", sound.error().message.c_str());
//
// check() reads a container as if it lay in this memory: the same bytes, with checked loads. A load
// outside the heap of the running transaction's pool, or a misaligned one, throws
// failure(errc::corrupt). A second claim of the same bytes throws it too. check() claims each block
// that it reaches, so it visits each block once and ends, whatever the pointers are. It stores
// nothing.
//
// Claims are recorded in the thread's bounded_walk. A thread has at most one, inside a transaction.
#pragma once

#include <stele/memory.h>

#include <memory>

namespace stele {

namespace detail {

// One check() of this thread: the bounds of the running transaction's pool, and the claims so far.
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
std::size_t heap_bytes();  // size of the heap: the bound of a walk

// Returns the body's result. A failure with errc::corrupt that the body throws becomes the returned
// error.
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
  // The alignment of a pointer's target. A void pointer leads to a container's own block.
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

// No effect with other memories, whose content is trusted.
template <class Memory>
void claim(const void* block, std::size_t size_bytes) {
  if constexpr (is_bounded<Memory>) Memory::claim(block, size_bytes);
}
template <class Memory>
void validate(const void* from, std::size_t size_bytes) {
  if constexpr (requires { Memory::validate(from, size_bytes); })
    Memory::validate(from, size_bytes);
}

}  // namespace detail

}  // namespace stele
