// The core of stele.KV: the key-value store of <stele/kv.h>, with the transactions of Python's
// pools. Opening, single items and the class.
//
// Keys and values are bytes; str is stored as UTF-8.
#include <base/assert.h>
#include "boundary.h"
#include "open_store.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace stele::python {

std::string_view characters_of(nb::handle object) {
  if (const auto characters = characters_in(object)) return *characters;
  raise(PyExc_TypeError, std::string("a key-value store holds bytes and str, not ") +
                             Py_TYPE(object.ptr())->tp_name);
}

namespace {

kv_handle& self_of(PyObject* self) {
  return instance_of<kv_handle>(self);
}

nb::object get(const kv_handle& h, nb::handle key, nb::object otherwise) {
  const auto s = h.store();
  const std::string_view k = characters_of(key);
  std::string value;
  const bool there = h.in->read([&] { return unwrap(s->get(k, value)); });
  return there ? to_bytes(value) : std::move(otherwise);
}

void put(const kv_handle& h, nb::handle key, nb::handle value) {
  const auto s = h.store();
  const std::string_view k = characters_of(key), v = characters_of(value);
  h.in->update_by([&](durability how) { return s->put(k, v, how); });
}

bool erase(const kv_handle& h, nb::handle key) {
  const auto s = h.store();
  const std::string_view k = characters_of(key);
  return h.in->update_by([&](durability how) { return s->erase(k, how); });
}

// Called by the interpreter.

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  return object_or_null([&] {
    nb::object found = get(self_of(self), key, nb::object());
    if (!found.is_valid()) raise_key_error(key);
    return found;
  });
}

int assign_subscript(PyObject* self, PyObject* key, PyObject* value) noexcept {
  return number_or_error([&] {
    if (value != nullptr)
      put(self_of(self), key, value);
    else if (!erase(self_of(self), key))
      raise_key_error(key);
    return 0;
  });
}

Py_ssize_t length(PyObject* self) noexcept {
  return number_or_error([&] {
    const kv_handle& h = self_of(self);
    const auto s = h.store();
    const std::size_t items = h.in->read([&] { return unwrap(s->size()); });
    if (items > h.in->core().size())
      throw_library_error(errc::corrupt,
                          h.in->path() +
                              ": the content is damaged: the store says that it has more "
                              "items than the pool has bytes; check the pool, or "
                              "restore it from a copy");
    return static_cast<Py_ssize_t>(items);
  });
}

int contains(PyObject* self, PyObject* key) noexcept {
  return number_or_error([&] {
    const kv_handle& h = self_of(self);
    const auto s = h.store();
    const std::string_view k = characters_of(key);
    return h.in->read([&] { return unwrap(s->contains(k)) ? 1 : 0; });
  });
}

PyType_Slot slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
                       {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
                       {Py_mp_length, reinterpret_cast<void*>(&length)},
                       {Py_sq_contains, reinterpret_cast<void*>(&contains)},
                       {0, nullptr}};

std::shared_ptr<open_store> open(const nb::bytes& name, const open_options& options) {
  const std::string path = path_of(name);
  auto store = [&] {
    const nb::gil_scoped_release gil_released;
    return options.read_only ? kv::open_read_only(path) : kv::open(path, options.pool);
  }();
  return std::make_shared<open_store>(path, unwrap(std::move(store)), options);
}

void check(open_store& s) {
  s.check_storage();
  s.read([&] {
    unwrap(s.unnamed_store().check());
    return true;
  });
}

}  // namespace

void bind_kv(nb::module_& m) {
  nb::class_<open_store, transactions>(m, "OpenStore").def("check", &check);
  nb::class_<kv_handle> handle(m, "KVBase", nb::type_slots(slots));
  handle
      .def("__init__",
           [](kv_handle* at, const nb::bytes& path, const open_options& options) {
             auto in = open(path, options);
             auto slot = in->unnamed();
             STELE_ASSERT_ALWAYS(slot != nullptr && slot->name.empty());
             new (at) kv_handle{std::move(in), std::move(slot)};
           })
      .def("get", &get, nb::arg("key"), nb::arg("default").none() = nb::none())
      .def_prop_ro("core", [](const kv_handle& h) { return h.in; })
      .def_prop_ro("name", [](const kv_handle& h) { return to_bytes(h.slot->name); });
  bind_kv_features(handle);
}

}  // namespace stele::python
