// Functions that the interpreter calls directly, without a layer that translates exceptions.
//
// Item access of dicts and lists uses them, because it is the most frequent operation.
#pragma once

#include <base/assert.h>
#include "values.h"

namespace stele::python {

// Sets the interpreter's error from the current exception. stele.errors has a class for each error
// code of the library.
void set_error() noexcept;
void register_errors(nb::module_& m);

// Returns f() -> nb::object, or null with the interpreter's error set.
template <class F>
PyObject* object_or_null(F&& f) noexcept {
  try {
    nb::object made(f());
    STELE_ASSERT(made.is_valid());  // else there would have to be an error
    return made.release().ptr();
  } catch (...) {
    set_error();
    return nullptr;
  }
}

// Returns f(), a number that is not negative, or -1 with the interpreter's error set.
template <class F>
auto number_or_error(F&& f) noexcept -> decltype(f()) {
  try {
    const auto number = f();
    STELE_ASSERT(number >= 0);  // else there would have to be an error
    return number;
  } catch (...) {
    set_error();
    return -1;
  }
}

[[noreturn]] void raise_key_error(nb::handle key);

void bind_dict(nb::module_& m);
void bind_list(nb::module_& m);
void bind_pool(nb::module_& m);  // call first: other classes derive from its class
void bind_kv(nb::module_& m);

}  // namespace stele::python
