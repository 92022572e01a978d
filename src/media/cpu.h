// The only place with processor instructions: write a line back, store a line past the cache, order
// both.
//
// x86-64: clwb where the processor has it, else clflushopt, else clflush, found once at start;
// streams are 64 bytes of non-temporal stores, which the processor combines to one line; sfence
// orders them.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#error \
    "media/cpu.h knows x86-64 only; another processor needs its own write-back, streaming store and fence here"
#endif

#include <emmintrin.h>

namespace stele::media::cpu {

enum class write_back : std::uint8_t { clwb, clflushopt, clflush };

// What this processor offers, best first; thread-safe.
write_back detect_write_back() noexcept;
const char* name_of(write_back w) noexcept;

inline const write_back line_write_back = detect_write_back();

inline void flush_line(const void* line) noexcept {
  auto* p = const_cast<char*>(static_cast<const char*>(line));
  if (line_write_back == write_back::clwb) [[likely]] {
    asm volatile("clwb %0" : "+m"(*p));
  } else if (line_write_back == write_back::clflushopt) {
    asm volatile("clflushopt %0" : "+m"(*p));
  } else {
    _mm_clflush(p);
  }
}

// Both 8-aligned; `to` on a line. By words: a log line was stored by words just before, and a wider
// load would have to wait until those stores have left the store buffer, which they may not before
// the last fence is done (docs/decisions/7-tried.md).
inline void stream_line(void* to, const void* from) noexcept {
  auto* target = static_cast<long long*>(to);
  const auto* source = static_cast<const long long*>(from);
#pragma GCC unroll 8
  for (int word = 7; word >= 0; --word)
    _mm_stream_si64(target + word, source[word]);  // the first is a header, known last
}

inline void fence() noexcept {
  _mm_sfence();
}

// Asks for a line that is soon to be stored to, without waiting.
inline void prefetch_for_write(const void* line) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

// Of this machine's last-level cache, as the system tells; 16 MiB where it does not. Thread-safe.
std::size_t last_level_cache_bytes() noexcept;

// Waits a little inside a spin loop.
inline void relax() noexcept {
  _mm_pause();
}

}  // namespace stele::media::cpu
