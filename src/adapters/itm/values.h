// The functions that exist for each type of value: four loads, three stores, a log. See barriers.cc
// and vectors.cc.
#pragma once

#include <adapters/itm/routing.h>

#include <cstddef>
#include <cstdint>

namespace stele::itm {

__extension__ typedef _Complex float complex_float;
__extension__ typedef _Complex double complex_double;
__extension__ typedef _Complex long double complex_long_double;

}  // namespace stele::itm

#define STELE_ITM_LOAD(name, type, load)                                \
  type _ITM_##name(const type* from) {                                  \
    return stele::itm::guarded([&] { return stele::itm::load(from); }); \
  }
#define STELE_ITM_STORE(name, type)                                   \
  void _ITM_##name(type* to, type value) {                            \
    stele::itm::guarded([&] { stele::itm::store_value(to, value); }); \
  }
#define STELE_ITM_VALUE(letters, type)                     \
  STELE_ITM_LOAD(R##letters, type, load_value)             \
  STELE_ITM_LOAD(RaR##letters, type, load_value)           \
  STELE_ITM_LOAD(RaW##letters, type, load_value)           \
  STELE_ITM_LOAD(RfW##letters, type, load_value_for_write) \
  STELE_ITM_STORE(W##letters, type)                        \
  STELE_ITM_STORE(WaR##letters, type)                      \
  STELE_ITM_STORE(WaW##letters, type)                      \
  void _ITM_L##letters(const type* at) {                   \
    stele::itm::save_private(at, sizeof(type));            \
  }
