// guarded_memory: pool_memory for content that may contradict itself, as that of a file from
// elsewhere. Documents lie in it.
//
//   struct root { using pool_resident = void; stele::basic_vector<int, stele::guarded_memory> v; };
//
// A load or store outside the heap of the running transaction's pool, a misaligned link, a shape
// that no container has, and a chain of links that ends in a circle throw failure(errc::corrupt):
// no signal, no endless walk, no store outside the heap. An answer may still be wrong; check()
// tells. The bytes are those of pool_memory. A load costs one comparison more.
#pragma once

#include <stele/memory.h>

namespace stele {

namespace detail {

[[noreturn]] void throw_circle();

// Detects that a walk along links returns to a visited place, after Brent, "An Improved Monte Carlo
// Factorization Algorithm" (1980).
class cycle_detector {
 public:
  void step(const void* to) {
    if (to == anchor_) throw_circle();
    if (++steps_ == limit_) anchor_ = to, steps_ = 0, limit_ *= 2;
  }

 private:
  const void* anchor_ = this;  // an address outside every pool
  std::uint64_t steps_ = 0, limit_ = 1;
};

// Ordinary memory that this thread uses as an object in a pool while it moves one.
struct local_range {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};
inline constinit thread_local local_range this_local_range;

class guarded_local {
 public:
  guarded_local(const void* object, std::size_t size) noexcept : before_(this_local_range) {
    this_local_range = {reinterpret_cast<std::uintptr_t>(object), size};
  }
  ~guarded_local() { this_local_range = before_; }
  guarded_local(const guarded_local&) = delete;
  guarded_local& operator=(const guarded_local&) = delete;

 private:
  local_range before_;
};

// Throws unless the range is this thread's local range.
void verify_local(const void* from, std::size_t size);

[[gnu::always_inline]] inline void verify_guarded(const void* from, std::size_t size) {
  const access& a = this_access;
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  if (at < a.heap_base || at - a.pool_base > a.size || a.size - (at - a.pool_base) < size)
      [[unlikely]]
    verify_local(from, size);
}

}  // namespace detail

template <class T>
class guarded_field : public field<T> {
 public:
  using field<T>::field;
  guarded_field() noexcept = default;
  guarded_field(const guarded_field& other) = default;
  guarded_field& operator=(const guarded_field& other) {
    store(other.load());
    return *this;
  }
  guarded_field& operator=(T value) {
    store(value);
    return *this;
  }

  [[nodiscard]] T load() const {
    detail::verify_guarded(this, sizeof *this);
    const T value = field<T>::load();
    if constexpr (std::is_pointer_v<T>)
      if (value != nullptr) verify_target(value);
    return value;
  }
  void store(T value) {
    detail::verify_guarded(this, sizeof *this);
    field<T>::store(value);
  }
  operator T() const { return load(); }
  T operator->() const
    requires std::is_pointer_v<T>
  {
    return load();
  }

 private:
  // A void pointer leads to a container's own block.
  static void verify_target(const void* target) {
    using object = std::remove_pointer_t<T>;
    std::size_t alignment = 8;
    if constexpr (!std::is_void_v<object>) alignment = alignof(object);
    detail::verify_guarded(target, 1);
    if (reinterpret_cast<std::uintptr_t>(target) % alignment != 0) detail::throw_bad_pointer();
  }
};

template <class T>
inline constexpr bool detail::is_value_field<guarded_field<T>> = !std::is_pointer_v<T>;
template <class T>
inline constexpr bool detail::is_field<guarded_field<T>> = true;

struct guarded_memory : pool_memory {
  template <class T>
  using field = guarded_field<T>;
  using chain_check = detail::cycle_detector;
  using local_object = detail::guarded_local;

  static void load_bytes(void* to, const void* from, std::size_t size_bytes) {
    detail::verify_guarded(from, size_bytes);
    pool_memory::load_bytes(to, from, size_bytes);
  }
  static void store_bytes(void* to, const void* from, std::size_t size_bytes) {
    detail::verify_guarded(to, size_bytes);
    pool_memory::store_bytes(to, from, size_bytes);
  }
  static void fill_zero(void* to, std::size_t size_bytes) {
    detail::verify_guarded(to, size_bytes);
    pool_memory::fill_zero(to, size_bytes);
  }
  static void validate(const void* from, std::size_t size_bytes) {
    detail::verify_guarded(from, size_bytes);
  }
};

}  // namespace stele
