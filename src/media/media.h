// The seam: every byte that reaches a pool goes through a medium.
//
//   store(to, from, n)    ordinary store: visible to other threads; not durable until its line is
//                         flushed and fenced
//   stream(to, from, n)   non-temporal store of whole lines: durable after this thread's next fence
//   flush(at, n)          starts to write the lines of a range back: durable after this thread's
//                         next fence
//   fence()               on return, everything that this thread flushed or streamed is durable
//   bulk_persist(ranges)  on return, everything that any thread stored in these ranges before is
//                         durable
//
// A medium object belongs to one thread at a time. Its `shared` part is common to all threads of a
// pool. Mechanisms take the medium as a template parameter and never issue a flush instruction or a
// system call themselves. A medium whose fence can fail (a file) reports it by failed(): after that
// nothing may be acknowledged, and no sync is retried.
#pragma once

#include <base/assert.h>
#include <base/relaxed_counter.h>
#include <stele/detail/access.h>
#include <stele/error.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <span>
#include <string>

namespace stele::media {

using detail::line_size;
static_assert(line_size == 64, "streams and flushes are of 64 bytes");

struct counters {
  base::relaxed_counter fences, flushed_lines, streamed_bytes, stored_bytes;

  counters& operator+=(const counters& o) noexcept {
    fences += o.fences;
    flushed_lines += o.flushed_lines;
    streamed_bytes += o.streamed_bytes;
    stored_bytes += o.stored_bytes;
    return *this;
  }
};

// Whether a medium can make all of home durable at once, without a list of addresses.
enum class whole_cache : std::uint8_t { unsupported, supported, preferred };

struct range {
  std::byte* begin;
  std::size_t size;
};

// A pool file in memory: [0, home_offset) is header and logs, the rest is home.
struct pool_mapping {
  std::byte* base = nullptr;
  std::size_t size = 0;
  std::size_t home_offset = 0;
  int fd = -1;
  std::string path;
};

template <class M>
concept medium =
    requires(M m, void* to, const void* from, std::size_t n, std::span<const range> ranges) {
      typename M::shared;
      requires std::constructible_from<M, typename M::shared&, unsigned>;
      m.store(to, from, n);
      m.stream(to, from, n);
      m.flush(from, n);
      m.fence();
      m.bulk_persist(ranges);
      { m.failed() } -> std::same_as<bool>;
      { m.count } -> std::same_as<counters&>;
      { M::under_exploration } -> std::convertible_to<bool>;
      { M::whole_cache } -> std::convertible_to<whole_cache>;
    };

// A fence together with its place in the source, for a medium that asks for it.
template <class M>
[[gnu::always_inline]] inline void fence_at(M& m, [[maybe_unused]] const std::source_location& at) {
  if constexpr (requires { m.fence(at); })
    m.fence(at);
  else
    m.fence();
}

// Marks on the tape. A medium that records nothing ignores them.
enum class tape_mark : std::uint8_t { tx_begin, tx_commit, tx_abort, invoked, returned };

// Ordinary stores in units that neither tear nor overwrite neighbouring bytes: aligned words where
// possible, else single bytes.
[[gnu::always_inline]] inline void store_word(void* to, const void* from) noexcept {
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(to) % 8 == 0);  // else the store could tear
  std::uint64_t word;
  std::memcpy(&word, from, 8);
  __atomic_store_n(static_cast<std::uint64_t*>(to), word, __ATOMIC_RELAXED);
}
inline void store_line(void* to, const void* from) noexcept {
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(to) % line_size == 0);
#pragma GCC unroll 8
  for (std::size_t at = 0; at < line_size; at += 8)
    store_word(static_cast<unsigned char*>(to) + at, static_cast<const unsigned char*>(from) + at);
}

inline void store_untorn_range(void* to, const void* from, std::size_t size) noexcept {
  STELE_ASSERT(size == 0 || (to != nullptr && from != nullptr));
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  while (size != 0) {
    if ((reinterpret_cast<std::uintptr_t>(target) & 7) == 0 && size >= 8) {
      store_word(target, source);
      target += 8, source += 8, size -= 8;
    } else {
      __atomic_store_n(target++, *source++, __ATOMIC_RELAXED);
      --size;
    }
  }
}

[[gnu::always_inline]] inline void store_untorn(void* to, const void* from,
                                                std::size_t size) noexcept {
  if (size == 8 && (reinterpret_cast<std::uintptr_t>(to) & 7) == 0)
    store_word(to, from);
  else if (size == 1)
    __atomic_store_n(static_cast<unsigned char*>(to), *static_cast<const unsigned char*>(from),
                     __ATOMIC_RELAXED);
  else if (size == line_size && reinterpret_cast<std::uintptr_t>(to) % line_size == 0)
    store_line(to, from);
  else
    store_untorn_range(to, from, size);
}

// A predicate of assertions: whether a medium may stream this. The lines are whole, and the words
// of what is streamed can be loaded one by one.
inline bool can_stream(const void* to, const void* from, std::size_t size) noexcept {
  return size != 0 && size % line_size == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % line_size == 0 &&
         reinterpret_cast<std::uintptr_t>(from) % 8 == 0;
}

inline std::size_t line_count(const void* at, std::size_t size) noexcept {
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(at) + size >= reinterpret_cast<std::uintptr_t>(at));
  const auto first = reinterpret_cast<std::uintptr_t>(at) / line_size;
  const auto last = (reinterpret_cast<std::uintptr_t>(at) + size - 1) / line_size;
  return size == 0 ? 0 : last - first + 1;
}

}  // namespace stele::media
