/* Atomic blocks on a pool: programs compiled with g++ -fgnu-tm (or gcc) and linked with
 * libstele_itm instead of libitm.
 *
 * Plain structs with plain pointers live in a pool file; __transaction_atomic { } changes them.
 * When the block has ended, what it did is in the pool for good; when it is cancelled, conflicts or
 * dies, none of it is. The pool is mapped at one address for ever, so pointers stay good; it is an
 * error of open() when that address is not free. Ordinary memory in a block is rolled back and kept
 * apart from other threads' blocks as with libitm, with or without an open pool.
 *
 * Rules: the pool is touched inside blocks only, and by instrumented code: not in functions
 * declared transaction_pure, and not in a __transaction_relaxed block that calls anything unsafe
 * (gcc compiles such code to ordinary loads and stores). */
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

/* For C. Opens the pool at `path` (creates it when create_size is not 0) and gives its root, zeroed
 * when fresh; NULL when that is not possible: stele_itm_error() says why. Close it outside of
 * blocks: 0, or -1. */
void* stele_itm_open(const char* path, size_t create_size, size_t root_size) STELE_ITM_NOTHROW;
int stele_itm_close(void) STELE_ITM_NOTHROW;
const char* stele_itm_error(void) STELE_ITM_NOTHROW; /* of this thread's last call that failed */

/* The open pool's root, or NULL. Anywhere. */
void* stele_itm_root(void) STELE_ITM_NOTHROW STELE_ITM_PURE;
/* In a block: zeroed memory in the pool that exists exactly if the block commits, 16-aligned; NULL
 * when it does not fit, or no pool is open. */
void* stele_itm_malloc(size_t size_bytes) STELE_ITM_NOTHROW STELE_ITM_PURE;
/* In a block: frees it if the block commits. free() and delete do the same for objects in the pool.
 */
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

// What may live in a pool: no virtual functions (their tables move), no owner of memory elsewhere.
// Not thread-safe against each other: open and close, which wait until no block runs and keep new
// ones waiting. One pool at a time. Errors of open: those of pool<Root>::open; unsupported when the
// pool's address is not free; in_use when one is open here. Of the options, policy must be stm and
// map_at is the library's; the layout's name gets the prefix "itm".
[[nodiscard]] result<void*> open_root(const std::string& path, pool_options options,
                                      std::size_t root_size);
[[nodiscard]] result<> close();
bool is_open() noexcept;
std::string mechanism();
std::string durability_in_force();
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

// An error that leaves a block no way on: the pool is full when it commits, or the medium has
// failed. The block has been rolled back. The handler may end the program, or return to have the
// block run again (having freed space, say). The first one prints the error's sentence and ends the
// program. Returns the handler before; null is the first one.
using failure_handler = void (*)(const error&);
failure_handler on_failure(failure_handler handler) noexcept;

// In a block: zeroed memory in the pool. Throws stele::failure when it does not fit; a block that
// this leaves is rolled back (other exceptions commit the blocks that they leave, as gcc has it). A
// nested block that contains no __transaction_cancel is part of the block around it also in that.
STELE_ITM_PURE void* allocate(std::size_t size_bytes, std::size_t alignment);
STELE_ITM_PURE void deallocate(void* object);

// A new T in the pool; zeroed, then constructed when there are arguments or a constructor.
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

// `count` zeroed Ts side by side.
template <class T>
__attribute__((transaction_safe)) T* make_array(std::size_t count) {
  static_assert(std::is_trivially_default_constructible_v<T>,
                "arrays in a pool hold plain structs");
  return static_cast<T*>(allocate(
      count > (std::size_t{1} << 46) / sizeof(T) ? std::size_t{1} << 46 : count * sizeof(T),
      alignof(T)));
}

// Null is nothing. The memory is free when the block has committed.
template <class T>
__attribute__((transaction_safe)) void destroy(T* object) {
  if (object == nullptr) return;
  if constexpr (!std::is_trivially_destructible_v<T>) object->~T();
  deallocate(object);
}

}  // namespace stele::itm
#endif
