// The loads, stores and logs of single values that compiled blocks call: _ITM_RU4, _ITM_WaRU8,
// _ITM_LF and so on.
//
// Variants that name an earlier access (read after write, write after read) do the same as the
// plain ones, because the write set and the locks have that information. A read for write (Rf)
// locks ordinary memory at once. L saves the value of a thread's own variable.
#include <adapters/itm/values.h>

extern "C" {
STELE_ITM_VALUE(U1, std::uint8_t)
STELE_ITM_VALUE(U2, std::uint16_t)
STELE_ITM_VALUE(U4, std::uint32_t)
STELE_ITM_VALUE(U8, std::uint64_t)
STELE_ITM_VALUE(F, float)
STELE_ITM_VALUE(D, double)
STELE_ITM_VALUE(E, long double)
STELE_ITM_VALUE(CF, stele::itm::complex_float)
STELE_ITM_VALUE(CD, stele::itm::complex_double)
STELE_ITM_VALUE(CE, stele::itm::complex_long_double)
void _ITM_LB(const void* at, std::size_t size) {
  stele::itm::save_private(at, size);
}
}
