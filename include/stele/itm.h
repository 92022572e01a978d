/* Atomic blocks on a pool, for programs compiled with g++ (or gcc) -fgnu-tm and linked with
 * libstele_itm instead of libitm.
 *
 *   struct counter { unsigned long n; };
 *   auto root = stele::itm::open<counter>("counter.stele", {.create_size = 64 << 20});
 *   if (!root) return std::fprintf(stderr, "%s\n", root.error().message.c_str()), 1;
 *   counter* const c = *root;
 *   __transaction_atomic { ++c->n; }  // durable when the block has ended
 *
 * Plain structs with plain pointers live in a pool file; __transaction_atomic { } changes them.
 * When the block has ended, its changes are durable. If it is cancelled, has a conflict or is cut
 * off by a crash, none of its changes remain. A pool is always mapped at the same address, so
 * pointers stay valid; open() returns an error if that address is not free. Ordinary memory in a
 * block is rolled back and isolated from other threads' blocks as with libitm, also without a pool.
 *
 * Rules: access the pool only inside blocks and only from instrumented code. Functions declared
 * transaction_pure are not instrumented, nor is a __transaction_relaxed block that calls an unsafe
 * function: gcc compiles them to ordinary loads and stores. */
#pragma once

#include <stddef.h>

#if defined(__cpp_transactional_memory) || defined(__GNUC__) && !defined(__clang__)
#define STELE_ITM_PURE __attribute__((transaction_pure))
#else
#define STELE_ITM_PURE
#endif

#ifdef __cplusplus
extern "C" {
#define STELE_ITM_NOTHROW noexcept
#else
#define STELE_ITM_NOTHROW
#endif

/* For C. Opens the pool at `path` and returns its root. If create_size is not 0, creates a missing
 * pool first, with a zeroed root. Returns NULL on an error; stele_itm_error() has the message.
 * stele_itm_close() must be called outside of blocks; it returns 0, or -1 on an error. */
void* stele_itm_open(const char* path, size_t create_size, size_t root_size) STELE_ITM_NOTHROW;
int stele_itm_close(void) STELE_ITM_NOTHROW;
const char* stele_itm_error(void) STELE_ITM_NOTHROW; /* of this thread's last failed call */

/* The open pool's root, or NULL. May be called inside and outside of blocks. */
void* stele_itm_root(void) STELE_ITM_NOTHROW STELE_ITM_PURE;
/* In a block: zeroed memory in the pool, aligned to 16 bytes, allocated only if the block commits.
 * NULL if there is no room or no pool is open. */
void* stele_itm_malloc(size_t size_bytes) STELE_ITM_NOTHROW STELE_ITM_PURE;
/* In a block: frees the object if the block commits. free() and delete do the same for objects in
 * the pool. */
void stele_itm_free(void* object) STELE_ITM_NOTHROW STELE_ITM_PURE;

#ifdef __cplusplus
}

#include <stele/error.h>
#include <stele/pool.h>

#include <cstddef>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace stele::itm {

// A type in a pool has no virtual functions (their tables move) and owns no memory outside the
// pool. open and close are not thread-safe with each other; they wait for running blocks, and new
// blocks wait for them. One pool at a time. Errors of open: those of pool<Root>::open; unsupported,
// if the pool's address is not free; in_use, if this process has a pool open. Options: policy must
// be stm, the library sets map_at, and the layout's name gets the prefix "itm".
[[nodiscard]] result<void*> open_root(const std::string& path, pool_options options,
                                      std::size_t root_size);
[[nodiscard]] result<> close();
bool is_open() noexcept;
std::string mechanism();
durability_level durability_in_force();
pool_counters counters();

template <class Root>
[[nodiscard]] result<Root*> open(const std::string& path, const pool_options& options = {}) {
  static_assert(
      !std::is_polymorphic_v<Root>,
      "the root of a pool has no virtual functions: their table is elsewhere in the next process");
  auto root = open_root(path, options, sizeof(Root));
  if (!root) return std::unexpected(std::move(root.error()));
  return static_cast<Root*>(*root);
}

template <class Root>
STELE_ITM_PURE Root* root() noexcept {
  return static_cast<Root*>(stele_itm_root());
}

// Called on an error after which a block cannot go on: the pool is full at commit, or the medium
// has failed. The block has been rolled back. If the handler returns, the block runs again, for
// example after the handler has freed space. The default handler prints the error's message and
// ends the program. on_failure returns the previous handler; null stands for the default handler.
using failure_handler = void (*)(const error&);
failure_handler on_failure(failure_handler handler) noexcept;

// In a block: zeroed memory in the pool. Throws stele::failure if there is no room. A failure that
// leaves a block rolls it back; gcc commits a block that any other exception leaves. In this too, a
// nested block without __transaction_cancel is a part of the block around it.
STELE_ITM_PURE void* allocate(std::size_t size_bytes, std::size_t alignment);
STELE_ITM_PURE void deallocate(void* object);

// A new T in the pool: zeroed, then constructed if there are arguments or T has a constructor.
template <class T, class... Arguments>
__attribute__((transaction_safe)) T* make(Arguments... arguments) {
  static_assert(
      !std::is_polymorphic_v<T>,
      "an object in a pool has no virtual functions: their table is elsewhere in the next process");
  void* const memory = allocate(sizeof(T), alignof(T));
  if constexpr (sizeof...(Arguments) == 0 && std::is_trivially_default_constructible_v<T>)
    return static_cast<T*>(memory);
  else
    return ::new (memory) T(arguments...);
}

// `count` zeroed Ts in a row.
template <class T>
__attribute__((transaction_safe)) T* make_array(std::size_t count) {
  static_assert(std::is_trivially_default_constructible_v<T>,
                "arrays in a pool hold plain structs");
  return static_cast<T*>(allocate(
      count > (std::size_t{1} << 46) / sizeof(T) ? std::size_t{1} << 46 : count * sizeof(T),
      alignof(T)));
}

// Destroys the object; null does nothing. Its memory is free when the block has committed.
template <class T>
__attribute__((transaction_safe)) void destroy(T* object) {
  if (object == nullptr) return;
  if constexpr (!std::is_trivially_destructible_v<T>) object->~T();
  deallocate(object);
}

}  // namespace stele::itm
#endif
