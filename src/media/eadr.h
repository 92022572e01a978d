// eadr: the processor's caches are inside the power-fail domain. Nothing is flushed. A fence orders
// streams and stores, and is the only cost of durability.
#pragma once

#include <media/adr.h>

namespace stele::media {

class eadr : public adr {
 public:
  using adr::adr;

  void flush(const void*, std::size_t) noexcept {}
  void bulk_persist(std::span<const range>) noexcept { fence(); }
};
static_assert(medium<eadr>);

}  // namespace stele::media
