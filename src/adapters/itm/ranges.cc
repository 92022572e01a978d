// Byte ranges in blocks: _ITM_memcpy, _ITM_memmove and _ITM_memset, in the variants that compiled
// blocks call.
//
// Each side of a copy belongs to the transaction (Rt, Wt) or is known to be private to the thread
// (Rn, Wn). The rest of a name states an earlier access and changes nothing. A copy goes through a
// buffer, part by part, from the end that keeps overlapping bytes intact.
#include <base/assert.h>

#include <adapters/itm/routing.h>

#include <algorithm>
#include <array>

namespace stele::itm {

namespace {

enum class locality : bool { own, transactional };

using buffer = std::array<std::byte, 512>;

void copy_part(void* to, const void* from, std::size_t size, locality reads, locality writes) {
  buffer between;
  STELE_ASSERT(size != 0 && size <= between.size());
  if (reads == locality::own && !in_pool(reinterpret_cast<std::uintptr_t>(from)))
    std::memcpy(between.data(), from, size);
  else
    load_bytes(from, between.data(), size);
  if (writes == locality::own && !in_pool(reinterpret_cast<std::uintptr_t>(to)))
    std::memcpy(to, between.data(), size);
  else
    store_bytes(to, between.data(), size);
}

void copy(void* to, const void* from, std::size_t size, locality reads, locality writes) {
  guarded([&] {
    auto* const target = static_cast<std::byte*>(to);
    const auto* const source = static_cast<const std::byte*>(from);
    const bool upwards =
        reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from) >= size;
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, buffer().size());
      const std::size_t at = upwards ? done : size - done - part;
      STELE_ASSERT(at + part <= size);
      copy_part(target + at, source + at, part, reads, writes);
      done += part;
    }
  });
}

void fill(void* to, int byte, std::size_t size) {
  guarded([&] {
    buffer bytes;
    bytes.fill(static_cast<std::byte>(byte));
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, bytes.size());
      store_bytes(static_cast<std::byte*>(to) + done, bytes.data(), part);
      done += part;
    }
  });
}

}  // namespace

}  // namespace stele::itm

using stele::itm::locality;

#define STELE_ITM_COPY(variant, reads, writes)                               \
  void _ITM_memcpy##variant(void* to, const void* from, std::size_t size) {  \
    stele::itm::copy(to, from, size, reads, writes);                         \
  }                                                                          \
  void _ITM_memmove##variant(void* to, const void* from, std::size_t size) { \
    stele::itm::copy(to, from, size, reads, writes);                         \
  }
#define STELE_ITM_COPY_TO_ALL(reading)                                            \
  STELE_ITM_COPY(reading##Wt, locality::transactional, locality::transactional)   \
  STELE_ITM_COPY(reading##WtaR, locality::transactional, locality::transactional) \
  STELE_ITM_COPY(reading##WtaW, locality::transactional, locality::transactional) \
  STELE_ITM_COPY(reading##Wn, locality::transactional, locality::own)

extern "C" {
STELE_ITM_COPY_TO_ALL(Rt)
STELE_ITM_COPY_TO_ALL(RtaR)
STELE_ITM_COPY_TO_ALL(RtaW)
STELE_ITM_COPY(RnWt, locality::own, locality::transactional)
STELE_ITM_COPY(RnWtaR, locality::own, locality::transactional)
STELE_ITM_COPY(RnWtaW, locality::own, locality::transactional)
void _ITM_memsetW(void* to, int byte, std::size_t size) {
  stele::itm::fill(to, byte, size);
}
void _ITM_memsetWaR(void* to, int byte, std::size_t size) {
  stele::itm::fill(to, byte, size);
}
void _ITM_memsetWaW(void* to, int byte, std::size_t size) {
  stele::itm::fill(to, byte, size);
}
}
