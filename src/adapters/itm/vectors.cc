// Values of 8, 16 and 32 bytes in vector registers: _ITM_RM64, _ITM_WM128 and so on. The ABI has
// them only on x86; the widest are called only by code compiled for AVX.
#include <adapters/itm/values.h>

#if defined(__x86_64__)

#pragma GCC diagnostic ignored "-Wpsabi"

namespace stele::itm {

typedef float vector64 __attribute__((vector_size(8), may_alias));
typedef float vector128 __attribute__((vector_size(16), may_alias));
typedef float vector256 __attribute__((vector_size(32), may_alias));

namespace {

[[gnu::noinline]] void load_wide(const void* from, void* to) {
  guarded([&] { load_bytes(from, to, 32); });
}
[[gnu::noinline]] void store_wide(void* to, const void* from) {
  guarded([&] { store_bytes(to, from, 32); });
}

}  // namespace

}  // namespace stele::itm

#define STELE_ITM_AVX __attribute__((target("avx")))
// The widest values are passed as bytes to code compiled without AVX, whose calling convention
// differs.
#define STELE_ITM_WIDE_LOAD(name)                                                      \
  STELE_ITM_AVX stele::itm::vector256 _ITM_##name(const stele::itm::vector256* from) { \
    stele::itm::vector256 value;                                                       \
    stele::itm::load_wide(from, &value);                                               \
    return value;                                                                      \
  }
#define STELE_ITM_WIDE_STORE(name)                                                         \
  STELE_ITM_AVX void _ITM_##name(stele::itm::vector256* to, stele::itm::vector256 value) { \
    stele::itm::store_wide(to, &value);                                                    \
  }

extern "C" {
STELE_ITM_VALUE(M64, stele::itm::vector64)
STELE_ITM_VALUE(M128, stele::itm::vector128)
STELE_ITM_WIDE_LOAD(RM256)
STELE_ITM_WIDE_LOAD(RaRM256)
STELE_ITM_WIDE_LOAD(RaWM256)
STELE_ITM_WIDE_LOAD(RfWM256)
STELE_ITM_WIDE_STORE(WM256)
STELE_ITM_WIDE_STORE(WaRM256)
STELE_ITM_WIDE_STORE(WaWM256)
void _ITM_LM256(const void* at) {
  stele::itm::save_private(at, 32);
}
}

#endif
