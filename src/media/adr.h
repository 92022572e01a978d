// adr: memory whose power-fail domain ends at the memory controller. A line is durable when it was
// flushed or streamed, and then fenced.
#pragma once

#include <media/cpu.h>
#include <media/media.h>

namespace stele::media {

class adr {
 public:
  struct shared {};
  static constexpr bool under_exploration = false;
  static constexpr auto whole_cache = media::whole_cache::unsupported;

  adr(shared&, unsigned) {}

  void store(void* to, const void* from, std::size_t size) noexcept {
    store_untorn(to, from, size);
    count.stored_bytes += size;
  }
  void stream(void* to, const void* from, std::size_t size) noexcept {
    STELE_ASSERT(can_stream(to, from, size));
    for (std::size_t at = 0; at < size; at += line_size)
      cpu::stream_line(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at);
    count.streamed_bytes += size;
  }
  void flush(const void* at, std::size_t size) noexcept {
    const auto* line =
        reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) & ~(line_size - 1));
    const std::size_t lines = line_count(at, size);
    STELE_ASSERT(size == 0 || line + lines * line_size >= static_cast<const std::byte*>(at) + size);
    for (std::size_t i = 0; i < lines; ++i) cpu::flush_line(line + i * line_size);
    count.flushed_lines += lines;
  }
  void fence() noexcept {
    cpu::fence();
    ++count.fences;
  }
  void bulk_persist(std::span<const range> ranges) noexcept {
    for (const range& r : ranges) {
      STELE_ASSERT(r.begin != nullptr && r.size != 0);
      flush(r.begin, r.size);
    }
    fence();
  }
  void note(tape_mark, std::uint64_t) noexcept {}
  bool failed() const noexcept { return false; }

  counters count;
};
static_assert(medium<adr>);

}  // namespace stele::media
