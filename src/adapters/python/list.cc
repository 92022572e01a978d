// stele.List: a list in a pool. Python code adds operations made of these (index, count, remove,
// reverse, comparison).
#include <base/assert.h>
#include "boundary.h"

#include <nanobind/stl/shared_ptr.h>

namespace stele::python {

namespace {

[[noreturn]] void raise_out_of_range() {
  raise(PyExc_IndexError, "the list has no such item");
}

list_proxy& self_of(PyObject* self) {
  return instance_of<list_proxy>(self);
}

Py_ssize_t index_of(nb::handle number) {
  const Py_ssize_t i = PyNumber_AsSsize_t(number.ptr(), PyExc_IndexError);
  if (i == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return i;
}

// The position for a Python index in a list of this size; empty if there is none.
std::optional<std::size_t> resolve_index(Py_ssize_t index, std::size_t size) {
  const Py_ssize_t from_start = index < 0 ? index + static_cast<Py_ssize_t>(size) : index;
  if (from_start < 0 || static_cast<std::size_t>(from_start) >= size) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

struct slice {
  Py_ssize_t start, stop, step;
  explicit slice(nb::handle of) {
    STELE_ASSERT(PySlice_Check(of.ptr()));
    if (PySlice_Unpack(of.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
    STELE_ASSERT(step != 0);
  }
  // Returns the number of selected items in a list of this size; start and stop become positions.
  std::size_t fit(std::size_t size) {
    const auto count = static_cast<std::size_t>(
        PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &start, &stop, step));
    // Bounded, because a damaged list may claim more items than memory has bytes.
    STELE_ASSERT(size > PY_SSIZE_T_MAX || count <= size);
    STELE_ASSERT(size > PY_SSIZE_T_MAX || count == 0 ||
                 (place(0) < size && place(count - 1) < size));
    return count;
  }
  std::size_t place(std::size_t n) const {
    return static_cast<std::size_t>(start + static_cast<Py_ssize_t>(n) * step);
  }
};

nb::object get_item(const list_proxy& l, Py_ssize_t index) {
  const auto found = l.pool->read([&]() -> std::optional<loaded> {
    const document_list& in = l.resolve();
    copy_limit limit(*l.pool);
    const auto at = resolve_index(index, in.size());
    return at ? std::optional(load(in.at(*at), limit)) : std::nullopt;
  });
  if (!found) raise_out_of_range();
  return to_python(l.pool, *found);
}

nb::object get_slice(const list_proxy& l, slice wanted) {
  const auto found = l.pool->read([&] {
    const document_list& in = l.resolve();
    slice s = wanted;
    std::vector<loaded> all;
    copy_limit limit(*l.pool);
    const std::size_t count = s.fit(in.size());
    for (std::size_t n = 0; n < count; ++n) all.push_back(load(in.at(s.place(n)), limit));
    return all;
  });
  nb::list to;
  for (const loaded& v : found) to.append(to_python(l.pool, v));
  return to;
}

void set_item(const list_proxy& l, Py_ssize_t index, const draft& value) {
  const bool there = l.pool->update([&] {
    document_list& in = l.resolve();
    const auto at = resolve_index(index, in.size());
    if (at) store(in.at(*at), value);
    return at.has_value();
  });
  if (!there) raise_out_of_range();
}

// The values of an iterable; those of a list in a pool are of one state.
draft draft_of_all(const list_proxy& l, nb::handle values) {
  if (nb::isinstance<list_proxy>(values)) return draft_of(values, l.pool->pickles());
  const nb::object all = nb::steal(PySequence_List(values.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  return draft_of(all, l.pool->pickles());
}

// Stores the values in the places of a slice with a step. If there are not as many places, returns
// how many there are.
std::optional<std::size_t> set_stepped(document_list& in, slice s, const draft& values) {
  STELE_ASSERT(values.kind == value_kind::list);
  const std::size_t count = s.fit(in.size());
  if (count != values.items.size()) return count;
  for (std::size_t n = 0; n < count; ++n) store(in.at(s.place(n)), values.items[n]);
  return std::nullopt;
}

void replace(document_list& in, slice s, const draft& values) {
  STELE_ASSERT(s.step == 1);
  STELE_ASSERT(values.kind == value_kind::list);
  const std::size_t count = s.fit(in.size()), from = static_cast<std::size_t>(s.start);
  in.erase(from, from + count);
  for (std::size_t n = 0; n < values.items.size(); ++n)
    store(in.insert(from + n, {}), values.items[n]);
}

void set_slice(const list_proxy& l, slice wanted, const draft& values) {
  const auto unequal = l.pool->update([&]() -> std::optional<std::size_t> {
    document_list& in = l.resolve();
    if (wanted.step != 1) return set_stepped(in, wanted, values);
    replace(in, wanted, values);
    return std::nullopt;
  });
  if (unequal)
    raise(PyExc_ValueError, "a slice with a step, of " + std::to_string(*unequal) +
                                " places here, takes as many values, not " +
                                std::to_string(values.items.size()));
}

void delete_item(const list_proxy& l, Py_ssize_t index) {
  const bool there = l.pool->update([&] {
    document_list& in = l.resolve();
    const auto at = resolve_index(index, in.size());
    if (at) in.erase(*at);
    return at.has_value();
  });
  if (!there) raise_out_of_range();
}

void delete_slice(const list_proxy& l, slice wanted) {
  l.pool->update([&] {
    document_list& in = l.resolve();
    slice s = wanted;
    const std::size_t count = s.fit(in.size());
    if (s.step == 1)
      in.erase(static_cast<std::size_t>(s.start), static_cast<std::size_t>(s.start) + count);
    else
      for (std::size_t n = 0; n < count; ++n)
        // From the end, so that the other positions stay valid.
        in.erase(s.place(s.step > 0 ? count - 1 - n : n));
    return true;
  });
}

// Called by the interpreter.

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  return object_or_null([&] {
    return PySlice_Check(key) ? get_slice(self_of(self), slice(key))
                              : get_item(self_of(self), index_of(key));
  });
}

int assign_subscript(PyObject* self, PyObject* key, PyObject* value) noexcept {
  return number_or_error([&] {
    const list_proxy& l = self_of(self);
    const bool many = PySlice_Check(key);
    if (value == nullptr)
      many ? delete_slice(l, slice(key)) : delete_item(l, index_of(key));
    else
      many ? set_slice(l, slice(key), draft_of_all(l, value))
           : set_item(l, index_of(key), draft_of(value, l.pool->pickles()));
    return 0;
  });
}

Py_ssize_t length(PyObject* self) noexcept {
  return number_or_error([&] {
    const list_proxy& l = self_of(self);
    return l.pool->read([&] { return size_of(l.resolve().size(), *l.pool); });
  });
}

PyType_Slot slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
                       {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
                       {Py_mp_length, reinterpret_cast<void*>(&length)},
                       {0, nullptr}};

// Methods.

void append(const list_proxy& l, nb::handle value) {
  const draft d = draft_of(value, l.pool->pickles());
  l.pool->update([&] {
    store(l.resolve().append({}), d);
    return true;
  });
}

void extend(const list_proxy& l, nb::handle values) {
  const draft d = draft_of_all(l, values);
  STELE_ASSERT(d.kind == value_kind::list);
  l.pool->update([&] {
    document_list& in = l.resolve();
    for (const draft& item : d.items) store(in.append({}), item);
    return true;
  });
}

// As in Python: an index past an end means that end.
void insert(const list_proxy& l, nb::handle index, nb::handle value) {
  const Py_ssize_t wanted = index_of(index);
  const draft d = draft_of(value, l.pool->pickles());
  l.pool->update([&] {
    document_list& in = l.resolve();
    const auto size = static_cast<Py_ssize_t>(in.size());
    const Py_ssize_t at = std::clamp(wanted < 0 ? wanted + size : wanted, Py_ssize_t{0}, size);
    store(in.insert(static_cast<std::size_t>(at), {}), d);
    return true;
  });
}

nb::object pop(const list_proxy& l, Py_ssize_t index) {
  const auto taken = l.pool->update([&]() -> std::optional<loaded_tree> {
    document_list& in = l.resolve();
    const auto at = resolve_index(index, in.size());
    if (!at) return std::nullopt;
    copy_limit limit(*l.pool);
    loaded_tree tree = load_tree(in.at(*at), limit);
    in.erase(*at);
    return tree;
  });
  if (!taken) raise_out_of_range();
  return to_python(*l.pool, *taken);
}

void clear(const list_proxy& l) {
  l.pool->update([&] {
    l.resolve().clear();
    return true;
  });
}

nb::object copy(const list_proxy& l) {
  return to_python(*l.pool, l.pool->read([&] {
    copy_limit limit(*l.pool);
    return load_tree(l.resolve(), limit);
  }));
}

}  // namespace

void bind_list(nb::module_& m) {
  nb::class_<list_proxy>(m, "List", nb::type_slots(slots),
                         "A list in a pool: live. Every operation is a transaction, or a part of "
                         "the one that is open.")
      .def("append", &append, nb::arg("value").none(), "Puts a copy of the value at the end.")
      .def("extend", &extend, nb::arg("values"),
           "Puts copies of all values at the end, in one transaction.")
      .def("insert", &insert, nb::arg("index"), nb::arg("value").none(),
           "Puts a copy of the value before the index.")
      .def("pop", &pop, nb::arg("index") = -1,
           "Takes out the value at the index, as an ordinary one. Raises IndexError.")
      .def("clear", &clear, "Takes out everything.")
      .def("copy", &copy, "An ordinary list of one state, whose dicts and lists are ordinary too.")
      .def("_pool", [](const list_proxy& l) { return l.pool; })
      .def("_same", [](const list_proxy& a, const list_proxy& b) {
        return a.pool == b.pool && a.at == b.at && a.id == b.id;
      });
}

}  // namespace stele::python
