// The core of stele.KV: the key-value store of <stele/kv.h>, with the transactions of Python's
// pools.
//
// Keys and values are bytes; str is stored as UTF-8. A walk reads one page at a time, each page of
// one state, and holds nothing between pages.
#include "boundary.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <stele/kv.h>

namespace stele::python {

namespace {

class open_store final : public transactions {
 public:
  open_store(std::string path, kv store, const open_options& options)
      : transactions(std::move(path), store.core(), options), store_(std::move(store)) {}
  // Called with the GIL held.
  ~open_store() {
    const nb::gil_scoped_release gil_released;
    const kv last = std::move(store_);
  }
  kv& store() noexcept { return store_; }

 private:
  kv store_;
};

struct kv_handle {
  std::shared_ptr<open_store> in;
};

kv_handle& self_of(PyObject* self) {
  return *nb::inst_ptr<kv_handle>(nb::handle(self));
}

// A view of the characters of an object that the caller keeps alive.
std::string_view characters_of(nb::handle object) {
  const draft d = draft_of(object);
  if (!d.value.is_chars() || d.source.is_valid())
    raise(PyExc_TypeError, std::string("a key-value store holds bytes and str, not ") +
                               Py_TYPE(object.ptr())->tp_name);
  return d.value.chars();
}

nb::bytes to_bytes(std::string_view from) {
  return nb::bytes(from.data(), from.size());
}

nb::object get(const kv_handle& h, nb::handle key, nb::object otherwise) {
  const std::string_view k = characters_of(key);
  std::string value;
  const bool there = h.in->read([&] { return unwrap(h.in->store().get(k, value)); });
  return there ? to_bytes(value) : std::move(otherwise);
}

void put(const kv_handle& h, nb::handle key, nb::handle value) {
  const std::string_view k = characters_of(key), v = characters_of(value);
  h.in->update([&] {
    unwrap(h.in->store().put(k, v));
    return true;
  });
}

bool erase(const kv_handle& h, nb::handle key) {
  const std::string_view k = characters_of(key);
  return h.in->update([&] { return unwrap(h.in->store().erase(k)); });
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
    return static_cast<Py_ssize_t>(h.in->read([&] { return unwrap(h.in->store().size()); }));
  });
}

int contains(PyObject* self, PyObject* key) noexcept {
  return number_or_error([&] {
    const kv_handle& h = self_of(self);
    const std::string_view k = characters_of(key);
    return h.in->read([&] { return unwrap(h.in->store().contains(k)) ? 1 : 0; });
  });
}

PyType_Slot slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
                       {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
                       {Py_mp_length, reinterpret_cast<void*>(&length)},
                       {Py_sq_contains, reinterpret_cast<void*>(&contains)},
                       {0, nullptr}};

// At most `limit` items with start <= key < stop, of one state, as a list of pairs. An empty stop
// means no bound.
nb::list page(const kv_handle& h, nb::handle start, nb::handle stop, std::size_t limit) {
  const std::string_view from = characters_of(start), to = characters_of(stop);
  const auto found = h.in->read([&] { return unwrap(h.in->store().range(from, to, limit)); });
  nb::list items;
  for (const kv_item& i : found) items.append(nb::make_tuple(to_bytes(i.key), to_bytes(i.value)));
  return items;
}

// The values of all keys, of one state, in their order; None for a key that is not there.
nb::list get_many(const kv_handle& h, nb::handle keys) {
  const auto all = nb::steal(PySequence_Tuple(keys.ptr()));  // keeps the characters alive
  if (!all.is_valid()) throw nb::python_error();
  std::vector<std::string_view> wanted;
  for (const nb::handle key : nb::borrow<nb::tuple>(all)) wanted.push_back(characters_of(key));
  const auto found = h.in->read([&] {
    std::vector<std::optional<std::string>> values(wanted.size());
    unwrap(h.in->store().get_many(
        wanted, [&](std::size_t i, std::optional<std::string_view> value) { values[i] = value; }));
    return values;
  });
  nb::list to;
  for (const auto& value : found) to.append(value ? nb::object(to_bytes(*value)) : nb::none());
  return to;
}

std::shared_ptr<open_store> open(const std::string& path, const open_options& options) {
  refuse_null_byte(path);
  auto store = [&] {
    const nb::gil_scoped_release gil_released;
    return options.read_only ? kv::open_read_only(path) : kv::open(path, options.pool);
  }();
  return std::make_shared<open_store>(path, unwrap(std::move(store)), options);
}

void check(open_store& s) {
  s.check_storage();
  s.read([&] {
    unwrap(s.store().check());
    return true;
  });
}

}  // namespace

void bind_kv(nb::module_& m) {
  nb::class_<open_store, transactions>(m, "OpenStore").def("check", &check);
  nb::class_<kv_handle>(m, "KVBase", nb::type_slots(slots))
      .def("__init__", [](kv_handle* at, const std::string& path,
                          const open_options& options) { new (at) kv_handle{open(path, options)}; })
      .def("get", &get, nb::arg("key"), nb::arg("default").none() = nb::none())
      .def("get_many", &get_many, nb::arg("keys"))
      .def("_page", &page)
      .def_prop_ro("_core", [](const kv_handle& h) { return h.in; });
}

}  // namespace stele::python
