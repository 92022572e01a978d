// Routes each load and store of a block: to the pool's transaction, to ordinary memory under locks,
// or directly to memory.
//
// Pool memory is accessed only through Stele's own routing (stele/detail/access.h), whatever the
// mechanism maps there. Ordinary memory is stored to at once, after its line was locked and its old
// bytes saved. Stack frames of calls that the block made end with the block and are accessed
// directly. These functions may throw restart or failure; see guarded().
#pragma once

#include <base/assert.h>

#include <adapters/itm/block.h>

#include <cstring>

namespace stele::itm {

inline bool in_pool(std::uintptr_t address) noexcept {
  return address - detail::this_access.pool_base < detail::this_access.size;
}

void load_from_outside(block& b, std::uintptr_t address, void* to, std::size_t size);
void store_to_outside(block& b, std::uintptr_t address, const void* from, std::size_t size);
void load_bytes(const void* from, void* to, std::size_t size);
void store_bytes(void* to, const void* from, std::size_t size);
// For memory that the compiler knows to be private to the thread: saved for roll-back, not locked.
void save_private(const void* at, std::size_t size);

template <class T>
[[gnu::always_inline]] inline T load_value(const T* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if constexpr (detail::within_word<T>)
    if (in_pool(address) && address % sizeof(T) == 0) [[likely]]
      return detail::load(from);
  T value;
  load_bytes(from, &value, sizeof(T));
  return value;
}

template <class T>
[[gnu::always_inline]] inline void store_value(T* to, T value) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if constexpr (detail::within_word<T>)
    if (in_pool(address) && address % sizeof(T) == 0) [[likely]] {
      block::current()->save_pool_undo(address, sizeof(T));
      return detail::store(to, value);
    }
  store_bytes(to, &value, sizeof(T));
}

// A load before a store to the same address: takes the lock at once.
template <class T>
inline T load_value_for_write(const T* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  block& b = *block::current();
  if (in_pool(address) || b.own_stack(address)) return load_value(from);
  b.announce_outside();
  b.transaction().lock_volatile(address, sizeof(T));
  STELE_ASSERT(b.transaction().volatile_undo().locked);  // the commit draws a TxID
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace stele::itm
