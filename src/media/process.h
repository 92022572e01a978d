// process: memory that outlives the process but not the machine (a shared mapping of a file). A
// store needs no flush: it is as durable as this medium can make it once it is visible. A fence
// only stops the compiler from reordering stores.
#pragma once

#include <media/adr.h>

namespace stele::media {

class process : public adr {
 public:
  using adr::adr;

  void stream(void* to, const void* from, std::size_t size) noexcept {
    STELE_ASSERT(can_stream(to, from, size));
    store_untorn(to, from, size);
    count.streamed_bytes += size;
  }
  void flush(const void*, std::size_t) noexcept {}
  void fence() noexcept { asm volatile("" : : : "memory"); }
  void bulk_persist(std::span<const range>) noexcept { fence(); }
};
static_assert(medium<process>);

}  // namespace stele::media
