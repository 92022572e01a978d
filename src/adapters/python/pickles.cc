// See pickles.h.
#include "pickles.h"

#include <base/assert.h>

namespace stele::python {

namespace nb = nanobind;

nb::object pickled(nb::handle object) {
  const nb::object pickle = nb::module_::import_("pickle").attr("dumps")(object);
  nb::object marked = nb::bytes(pickle_mark.data(), pickle_mark.size()) + pickle;
  if (!PyBytes_CheckExact(marked.ptr())) {
    PyErr_SetString(PyExc_TypeError, "pickle.dumps gave something else than bytes");
    throw nb::python_error();
  }
  return marked;
}

nb::object unpickled(std::string_view bytes) {
  STELE_ASSERT(is_pickle(bytes));
  bytes.remove_prefix(pickle_mark.size());
  return nb::module_::import_("pickle").attr("loads")(nb::bytes(bytes.data(), bytes.size()));
}

}  // namespace stele::python
