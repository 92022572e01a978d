// The only file with processor instructions: flush a line, stream a line, fence.
//
// x86-64. A flush is clwb where the processor has it, else clflushopt, else clflush; the choice is
// made once at start. A stream is 64 bytes of non-temporal stores, which the processor combines
// into one line. sfence orders flushes and streams.
#pragma once

#include <base/assert.h>

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#error \
    "media/cpu.h knows x86-64 only; another processor needs its own write-back, streaming store and fence here"
#endif

#include <emmintrin.h>

namespace stele::media::cpu {

enum class write_back : std::uint8_t { clwb, clflushopt, clflush };

// The best that this processor offers; thread-safe.
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

// `to` is line-aligned, `from` 8-aligned. Loads are single words because a log line was stored by
// words just before. A wider load would wait until those stores have left the store buffer, which
// may be only after the last fence is done (docs/decisions/7-tried.md).
inline void stream_line(void* to, const void* from) noexcept {
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(to) % 64 == 0 &&
               reinterpret_cast<std::uintptr_t>(from) % 8 == 0);
  auto* target = static_cast<long long*>(to);
  const auto* source = static_cast<const long long*>(from);
#pragma GCC unroll 8
  for (int word = 7; word >= 0; --word)
    _mm_stream_si64(target + word, source[word]);  // word 0 last: a header, computed last
}

inline void fence() noexcept {
  _mm_sfence();
}

// Prefetches a line that is soon to be stored to; does not wait.
inline void prefetch_for_write(const void* line) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

// Size of this machine's last-level cache as the system reports it, else 16 MiB. Thread-safe.
std::size_t last_level_cache_bytes() noexcept;

// For the body of a spin loop.
inline void relax() noexcept {
  _mm_pause();
}

}  // namespace stele::media::cpu
