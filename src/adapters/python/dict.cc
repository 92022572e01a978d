// stele.Dict: a dict in a pool. Views and comparison are added in Python.
#include "boundary.h"

#include <nanobind/stl/string.h>

namespace stele::python {

namespace {

dict_proxy& self_of(PyObject* self) {
  return instance_of<dict_proxy>(self);
}

// Fills `to` in place, because this is the most frequent operation.
std::optional<loaded> find(const dict_proxy& d, const scalar& key) {
  std::optional<loaded> to;
  d.pool->read([&] {
    copy_limit limit(*d.pool);
    const document_value* const found = d.resolve().find(key);
    found != nullptr ? void(to = load(*found, limit)) : to.reset();
    return true;
  });
  return to;
}

void assign(const dict_proxy& d, const scalar& key, const draft& value) {
  d.pool->update([&] {
    store(d.resolve()[key], value);
    return true;
  });
}

bool erase(const dict_proxy& d, const scalar& key) {
  return d.pool->update([&] { return d.resolve().erase(key); });
}

// Called by the interpreter.

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  return object_or_null([&] {
    const dict_proxy& d = self_of(self);
    const auto found = find(d, key_of(key));
    if (!found) raise_key_error(key);
    return to_python(d.pool, *found);
  });
}

int assign_subscript(PyObject* self, PyObject* key, PyObject* value) noexcept {
  return number_or_error([&] {
    const dict_proxy& d = self_of(self);
    if (value != nullptr)
      assign(d, key_of(key), draft_of(value, d.pool->pickles()));
    else if (!erase(d, key_of(key)))
      raise_key_error(key);
    return 0;
  });
}

Py_ssize_t length(PyObject* self) noexcept {
  return number_or_error([&] {
    const dict_proxy& d = self_of(self);
    return d.pool->read([&] { return size_of(d.resolve().size(), *d.pool); });
  });
}

int contains(PyObject* self, PyObject* key) noexcept {
  return number_or_error([&] {
    const dict_proxy& d = self_of(self);
    const scalar k = key_of(key);
    return d.pool->read([&] { return d.resolve().find(k) != nullptr ? 1 : 0; });
  });
}

PyType_Slot slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
                       {Py_mp_ass_subscript, reinterpret_cast<void*>(&assign_subscript)},
                       {Py_mp_length, reinterpret_cast<void*>(&length)},
                       {Py_sq_contains, reinterpret_cast<void*>(&contains)},
                       {0, nullptr}};

// Methods.

nb::object get(const dict_proxy& d, nb::handle key, nb::object otherwise) {
  const auto found = find(d, key_of(key));
  return found ? to_python(d.pool, *found) : std::move(otherwise);
}

nb::object set_default(const dict_proxy& d, nb::handle key, nb::handle otherwise) {
  const scalar k = key_of(key);
  const draft value = draft_of(otherwise, d.pool->pickles());
  return to_python(d.pool, d.pool->update([&] {
    copy_limit limit(*d.pool);
    document_dict& in = d.resolve();
    if (document_value* const found = in.find(k)) return load(*found, limit);
    document_value& fresh = in[k];
    store(fresh, value);
    return load(fresh, limit);
  }));
}

// Returns the removed value as ordinary Python values, because a list or dict of the pool is
// destroyed here.
nb::object pop(const dict_proxy& d, nb::handle key, nb::args otherwise) {
  if (otherwise.size() > 1) raise(PyExc_TypeError, "pop takes a key and at most one default");
  const scalar k = key_of(key);
  const auto taken = d.pool->update([&]() -> std::optional<loaded_tree> {
    document_dict& in = d.resolve();
    const document_value* const found = in.find(k);
    if (found == nullptr) return std::nullopt;
    copy_limit limit(*d.pool);
    loaded_tree tree = load_tree(*found, limit);
    in.erase(k);
    return tree;
  });
  if (taken) return to_python(*d.pool, *taken);
  if (otherwise.size() == 0) raise_key_error(key);
  return nb::object(otherwise[0]);
}

using key_and_tree = std::pair<scalar_copy, loaded_tree>;

nb::object pop_item(const dict_proxy& d) {
  const auto taken = d.pool->update([&]() -> std::optional<key_and_tree> {
    document_dict& in = d.resolve();
    const auto key = in.last_key();
    const document_value* const found = key ? in.find(*key) : nullptr;
    if (found == nullptr) return std::nullopt;
    copy_limit limit(*d.pool);
    key_and_tree last{*key, load_tree(*found, limit)};
    in.erase(*key);
    return last;
  });
  if (!taken) raise(PyExc_KeyError, "the dict is empty");
  return nb::make_tuple(to_python(taken->first), to_python(*d.pool, taken->second));
}

// Stores all items of `from` in one transaction.
void update(const dict_proxy& d, nb::handle from) {
  const draft items = draft_of(from, d.pool->pickles());
  if (items.kind != value_kind::dict) raise(PyExc_TypeError, "update takes a dict");
  d.pool->update([&] {
    document_dict& in = d.resolve();
    for (std::size_t i = 0; i < items.items.size(); ++i) store(in[items.keys[i]], items.items[i]);
    return true;
  });
}

void clear(const dict_proxy& d) {
  d.pool->update([&] {
    d.resolve().clear();
    return true;
  });
}

// A list of the keys of one state: iteration in Python holds nothing of the pool.
nb::list keys(const dict_proxy& d) {
  const auto found = d.pool->read([&] {
    std::vector<scalar_copy> all;
    copy_limit limit(*d.pool);
    d.resolve().for_each(
        [&](const document_value& k, const document_value&) { all.push_back(load_key(k, limit)); });
    return all;
  });
  nb::list to;
  for (const scalar_copy& k : found) to.append(to_python(k));
  return to;
}

nb::list items(const dict_proxy& d) {
  const auto found = d.pool->read([&] {
    std::vector<std::pair<scalar_copy, loaded>> all;
    copy_limit limit(*d.pool);
    d.resolve().for_each([&](const document_value& k, const document_value& v) {
      all.emplace_back(load_key(k, limit), load(v, limit));
    });
    return all;
  });
  nb::list to;
  for (const auto& [k, v] : found) to.append(nb::make_tuple(to_python(k), to_python(d.pool, v)));
  return to;
}

nb::object copy(const dict_proxy& d) {
  return to_python(*d.pool, d.pool->read([&] {
    copy_limit limit(*d.pool);
    return load_tree(d.resolve(), limit);
  }));
}

}  // namespace

void bind_dict(nb::module_& m) {
  nb::class_<dict_proxy>(m, "Dict", nb::type_slots(slots),
                         "A dict in a pool: live, in the order of insertion. Every operation is a "
                         "transaction, or a part of the one that is open.")
      .def("get", &get, nb::arg("key"), nb::arg("default").none() = nb::none(),
           "What the key has; else the default.")
      .def("setdefault", &set_default, nb::arg("key"), nb::arg("default").none() = nb::none(),
           "What the key has; else sets it to the default and gives that.")
      .def("pop", &pop,
           "Takes out what the key has, as an ordinary value; else gives the default, or raises "
           "KeyError.")
      .def("popitem", &pop_item,
           "Takes out the pair that was inserted last, as ordinary values. Raises KeyError.")
      .def("_update", &update)
      .def("clear", &clear, "Takes out everything.")
      .def("_keys", &keys)
      .def("_items", &items)
      .def("copy", &copy, "An ordinary dict of one state, whose dicts and lists are ordinary too.")
      .def("_same", [](const dict_proxy& a, const dict_proxy& b) {
        return a.pool == b.pool && a.at == b.at && a.id == b.id;
      });
}

}  // namespace stele::python
