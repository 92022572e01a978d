// Values of types that a pool does not hold, as pickles: bytes that begin with a mark.
//
// Loading a pickle runs the code that it names. So only a pool that was opened with pickle=True
// loads pickles, and the package stores no other bytes that begin with the mark: bytes from outside
// never become a pickle.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace stele::python {

inline constexpr std::string_view pickle_mark = "\xF6stele pickle\r\n\x1A";
static_assert(pickle_mark.size() == 16);

inline bool is_pickle(std::string_view bytes) noexcept {
  return bytes.starts_with(pickle_mark);
}

// The mark and the object's pickle, as bytes of Python. Throws what pickling raises.
nanobind::object pickled(nanobind::handle object);
// The object of bytes that are is_pickle(). Throws what unpickling raises.
nanobind::object unpickled(std::string_view bytes);

}  // namespace stele::python
