// The routing behind field<T>: every load and store of pool memory comes here. Not for direct use.
//
// Each thread has one `access` record with the addresses that belong to its running transaction.
// Outside that range (ordinary memory, or no transaction) a load is a plain load. A store is
// checked against the open pools, because a crash would lose or tear a store that bypassed the
// transaction. This file does not depend on any mechanism.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stele::detail {

class transaction;

// A cache line: the unit of write-back and of the write set.
inline constexpr std::size_t line_size = 64;

// The content of a word before a store in place. `where`: its address, with the size of the store
// in the top byte.
struct undo_entry {
  std::uintptr_t where;
  std::uint64_t value;
};

struct access {
  std::uintptr_t pool_base = 0;  // first byte of the running transaction's pool
  std::size_t size = 0;          // bytes of the pool; 0: no transaction runs
  std::uintptr_t heap_base = 0;  // first byte of its heap, which ends at the end of the pool
  // Loads in [pool_base, pool_base + load_size) are routed. 0: all loads are direct.
  std::size_t load_size = 0;
  std::uint64_t filter = 0;  // a routed load is direct if the bit of its line is clear
  // Stores in [pool_base, pool_base + in_place_size) go directly home; the old word is kept for
  // roll-back.
  std::size_t in_place_size = 0;
  undo_entry* undo_next = nullptr;  // next free entry for an old word
  undo_entry* undo_end = nullptr;
  transaction* running = nullptr;
};

inline constinit thread_local access this_access;

// Where the pool of the running transaction begins, and its heap. Without a transaction the heap
// has no bytes: end <= begin.
struct heap_range {
  std::uintptr_t pool, begin, end;
};
inline heap_range running_heap() noexcept {
  const access& a = this_access;
  return {a.pool_base, a.heap_base, a.pool_base + a.size};
}

// The filter bit of the line that holds `address`.
inline std::uint64_t filter_bit(std::uintptr_t address) noexcept {
  return std::uint64_t{1} << (((address / line_size) * 0x9E3779B97F4A7C15u) >> 58);
}

// Slow paths. They may throw stele::failure, or an exception that restarts the transaction.
// load_word needs an address that is a multiple of 8.
std::uint64_t load_word(std::uintptr_t address);
// Stores the low `size` bytes of `bits`, within one word.
void store_word(std::uintptr_t address, std::uint64_t bits, unsigned size);
void store_whole_word(std::uintptr_t address, std::uint64_t bits);
void load_routed_range(std::uintptr_t address, void* to, std::size_t size);
void store_range(void* to, const void* from, std::size_t size);
void fill_zero(void* to, std::size_t size);
// Makes room for more old words.
void grow_undo_buffer();
// Starts loading the lock of the line that holds a routed address, if the policy has locks.
void prefetch_lock(std::uintptr_t address) noexcept;

// Of programs compiled with STELE_DEBUG (docs/guide/debug.md); else nothing. Throw
// failure(errc::invalid_argument): for bytes of a pool that are in no block in use, and for a
// pointer in a pool to anything but a block in use of the same pool.
void verify_use(const void* bytes);
void verify_target(const void* field, const void* target);
[[gnu::always_inline]] inline void check_use([[maybe_unused]] const void* bytes) {
#ifdef STELE_DEBUG
  verify_use(bytes);
#endif
}
[[gnu::always_inline]] inline void check_target([[maybe_unused]] const void* field,
                                                [[maybe_unused]] const void* target) {
#ifdef STELE_DEBUG
  verify_target(field, target);
#endif
}

// Called in a handler: the running transaction, if there is one, can only roll back. Its commit
// throws the exception that is being handled, or acts on it.
void doom_transaction() noexcept;

// A pointer or length in the data leads out of the heap of the running transaction's pool. Throws
// failure(errc::corrupt).
[[noreturn]] void throw_bad_pointer();
// Checks a range that a pointer in the data leads to, before it is loaded, so that corrupt data is
// an error and not a signal.
[[gnu::always_inline]] inline void verify_in_running_heap(const void* from, std::size_t size) {
  const access& a = this_access;
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  if (at < a.heap_base || at - a.pool_base > a.size || a.size - (at - a.pool_base) < size)
      [[unlikely]]
    throw_bad_pointer();
}
// Where a pointer leads that lies at `field` and is kept as its distance. One in the running
// transaction's pool leads into the heap, or to its end; otherwise throws failure(errc::corrupt).
[[gnu::always_inline]] inline std::uintptr_t target_in_heap(const void* field,
                                                            std::int64_t distance) {
  const access& a = this_access;
  const auto here = reinterpret_cast<std::uintptr_t>(field);
  const std::uintptr_t target = here + static_cast<std::uint64_t>(distance);
  if ((target < a.heap_base || target - a.pool_base > a.size) && here - a.pool_base < a.size)
      [[unlikely]]
    throw_bad_pointer();
  return target;
}

// True if a T at its natural alignment lies within one 8-byte word.
template <class T>
inline constexpr bool within_word =
    sizeof(T) <= 8 && std::has_single_bit(sizeof(T)) && alignof(T) == sizeof(T);

template <class T>
[[gnu::always_inline]] inline T load(const T* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const access& a = this_access;
  if (address - a.pool_base >= a.load_size || (a.filter & filter_bit(address)) == 0) [[likely]]
    return *from;
  T value;
  if constexpr (within_word<T>) {
    const std::uint64_t word = load_word(address & ~std::uintptr_t{7}) >> ((address & 7) * 8);
    std::memcpy(&value, &word, sizeof(T));
  } else {
    load_routed_range(address, &value, sizeof(T));
  }
  return value;
}

[[gnu::always_inline]] inline void load_range(const void* from, void* to, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (address - this_access.pool_base >= this_access.load_size)
    std::memcpy(to, from, size);
  else
    load_routed_range(address, to, size);
}

// Starts loading the line that holds `at`, and what a load of it checks. Any address is allowed.
[[gnu::always_inline]] inline void prefetch(const void* at) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  __builtin_prefetch(at);
  if (address - this_access.pool_base < this_access.load_size) prefetch_lock(address);
}

template <class T>
inline void store(T* to, T value) {
  if constexpr (within_word<T>) {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    access& a = this_access;
    if (address - a.pool_base < a.in_place_size) {
      if (a.undo_next == a.undo_end) [[unlikely]]
        grow_undo_buffer();
      const std::uintptr_t word_at = address & ~std::uintptr_t{7};
      *a.undo_next++ = {word_at | sizeof(T) << 56,
                        *reinterpret_cast<const std::uint64_t*>(word_at)};
      *to = value;
      return;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    if constexpr (sizeof(T) == 8)
      store_whole_word(address, word);
    else
      store_word(address, word, sizeof(T));
  } else {
    store_range(to, &value, sizeof(T));
  }
}

}  // namespace stele::detail
