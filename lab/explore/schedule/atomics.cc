// Atomic operations of code that is compiled with a call for each (-fsanitize=thread): a point,
// then the operation. gcc and clang call these names; no sanitizer library is linked.
//
// Ordinary accesses are calls too, without effect. Threads do not communicate by them, or the
// program has a data race, which ThreadSanitizer itself finds. Volatile loads are points.
#include <explore/schedule/points.h>

#include <cstddef>
#include <cstdint>

namespace schedule = stele::schedule;
using schedule::granularity;

namespace {

template <class T>
std::uint64_t bits_of(T value) noexcept {
  if constexpr (sizeof(T) <= 8)
    return static_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(value) ^ static_cast<std::uint64_t>(value >> 64);
}

template <class T>
T load(const volatile T* at) noexcept {
  schedule::point(granularity::loads);
  const T value = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  schedule::note_load(at, bits_of(value));
  return value;
}
template <class T>
void store(volatile T* at, T value) noexcept {
  schedule::point(granularity::stores);
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
  schedule::note_change(at);
}
template <class T, class Change>
T change(volatile T* at, Change&& make) noexcept {
  schedule::point(granularity::locks);
  const T before = __atomic_load_n(at, __ATOMIC_SEQ_CST), after = make(before);
  if (after == before) {
    schedule::note_load(at, bits_of(before));
  } else {
    __atomic_store_n(at, after, __ATOMIC_SEQ_CST);  // no other thread runs
    schedule::note_change(at);
  }
  return before;
}
// A point after it too: a thread often acts on what it took, or waits, without another operation.
template <class T>
T exchange(volatile T* at, T value) noexcept {
  const T before = change(at, [value](T) { return value; });
  schedule::point(granularity::locks);
  return before;
}
template <class T>
bool compare_exchange(volatile T* at, T* expected, T wanted) noexcept {
  bool equal = false;
  const T was = change(at, [&](T before) {
    equal = before == *expected;
    return equal ? wanted : before;
  });
  if (!equal) *expected = was;
  return equal;
}

}  // namespace

#define STELE_ATOMICS(bits, T)                                                             \
  T __tsan_atomic##bits##_load(const volatile T* a, int) {                                 \
    return load(a);                                                                        \
  }                                                                                        \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int) {                              \
    store(a, v);                                                                           \
  }                                                                                        \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) {                              \
    return exchange(a, v);                                                                 \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int) {                             \
    return change(a, [v](T b) { return static_cast<T>(b + v); });                          \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int) {                             \
    return change(a, [v](T b) { return static_cast<T>(b - v); });                          \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int) {                             \
    return change(a, [v](T b) { return static_cast<T>(b & v); });                          \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int) {                              \
    return change(a, [v](T b) { return static_cast<T>(b | v); });                          \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int) {                             \
    return change(a, [v](T b) { return static_cast<T>(b ^ v); });                          \
  }                                                                                        \
  T __tsan_atomic##bits##_fetch_nand(volatile T* a, T v, int) {                            \
    return change(a, [v](T b) { return static_cast<T>(~(b & v)); });                       \
  }                                                                                        \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* e, T w, int, int) { \
    return compare_exchange(a, e, w);                                                      \
  }                                                                                        \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* e, T w, int, int) {   \
    return compare_exchange(a, e, w);                                                      \
  }                                                                                        \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T e, T w, int, int) {        \
    compare_exchange(a, &e, w);                                                            \
    return e;                                                                              \
  }

#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"

extern "C" {

STELE_ATOMICS(8, std::uint8_t)
STELE_ATOMICS(16, std::uint16_t)
STELE_ATOMICS(32, std::uint32_t)
STELE_ATOMICS(64, std::uint64_t)

void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void*, std::size_t) {}
void __tsan_write_range(void*, std::size_t) {}
// Volatile loads copy home while other threads store to it; a lock tells afterwards.
#define STELE_ACCESS(size)                 \
  void __tsan_read##size(void*) {}         \
  void __tsan_write##size(void*) {}        \
  void __tsan_volatile_read##size(void*) { \
    schedule::point(granularity::loads);   \
  }                                        \
  void __tsan_volatile_write##size(void*) {}
STELE_ACCESS(1)
STELE_ACCESS(2)
STELE_ACCESS(4)
STELE_ACCESS(8)
STELE_ACCESS(16)
#define STELE_UNALIGNED(size)                \
  void __tsan_unaligned_read##size(void*) {} \
  void __tsan_unaligned_write##size(void*) {}
STELE_UNALIGNED(2)
STELE_UNALIGNED(4)
STELE_UNALIGNED(8)
STELE_UNALIGNED(16)
}
