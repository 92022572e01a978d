// Conversions; see values.h.
#include "values.h"

#include <base/assert.h>
#include "pickles.h"

namespace stele::python {

void raise(PyObject* type, const std::string& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

namespace {

// Levels of nesting that a copy follows, fewer than the interpreter's stack allows.
constexpr unsigned max_copy_depth = 800;

std::string type_of(nb::handle object) {
  return Py_TYPE(object.ptr())->tp_name;
}

std::string_view text_of(nb::handle text) {
  STELE_ASSERT(PyUnicode_Check(text.ptr()));
  Py_ssize_t size = 0;
  const char* const from = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (from == nullptr) throw nb::python_error();
  return {from, static_cast<std::size_t>(size)};
}

std::string_view bytes_of(nb::handle bytes) {
  STELE_ASSERT(PyBytes_Check(bytes.ptr()));
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// Empty: it has more than 64 bits.
std::optional<std::int64_t> integer_of(nb::handle number) {
  STELE_ASSERT(PyLong_Check(number.ptr()));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) return std::nullopt;
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}
[[noreturn]] void raise_too_large() {
  raise(PyExc_OverflowError,
        "an integer in a pool has 64 bits, from -2**63 to 2**63 - 1; store a larger one as str "
        "or bytes");
}

class recursion {
 public:
  recursion() {
    if (Py_EnterRecursiveCall(" while storing a value in a pool") != 0) throw nb::python_error();
  }
  ~recursion() { Py_LeaveRecursiveCall(); }
  recursion(const recursion&) = delete;
  recursion& operator=(const recursion&) = delete;
};

draft draft_of_sequence(nb::handle sequence, bool pickles) {
  const recursion deeper;
  draft d;
  d.kind = value_kind::list;
  // other threads may change a list meanwhile
  d.source = nb::steal(PySequence_Tuple(sequence.ptr()));
  if (!d.source.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(d.source.ptr()); ++i)
    d.items.push_back(draft_of(PyTuple_GET_ITEM(d.source.ptr(), i), pickles));
  STELE_ASSERT(d.is_whole());
  return d;
}

draft draft_of_mapping(nb::handle dict, bool pickles) {
  const recursion deeper;
  draft d;
  d.kind = value_kind::dict;
  d.source = nb::steal(PyDict_Copy(dict.ptr()));
  if (!d.source.is_valid()) throw nb::python_error();
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(d.source.ptr(), &at, &key, &value) != 0;) {
    d.keys.push_back(key_of(key));
    d.items.push_back(draft_of(value, pickles));
  }
  STELE_ASSERT(d.is_whole());
  return d;
}

draft draft_of_scalar(const scalar& s) {
  draft d;
  d.value = s;
  d.kind = s.kind();
  return d;
}

// Keeps the bytes.
draft draft_of_owned(nb::object bytes) {
  STELE_ASSERT(bytes.is_valid());
  draft d = draft_of_scalar(scalar::bytes(bytes_of(bytes)));
  d.source = std::move(bytes);
  return d;
}

draft draft_of_bytes(nb::handle bytes, bool pickles) {
  if (!is_pickle(bytes_of(bytes))) return draft_of_scalar(scalar::bytes(bytes_of(bytes)));
  if (pickles) return draft_of_owned(pickled(bytes));
  raise(PyExc_ValueError,
        "bytes that begin with the mark of pickled values are stored only in a pool that is opened "
        "with pickle=True");
}

draft draft_of_buffer(nb::handle buffer, bool pickles) {
  auto copy = nb::steal(PyBytes_FromObject(buffer.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  if (is_pickle(bytes_of(copy))) return draft_of_bytes(copy, pickles);
  return draft_of_owned(std::move(copy));
}

template <class Proxy>
draft draft_of_proxy(const Proxy& p, bool pickles) {
  const nb::object copy = to_python(*p.pool, p.pool->read([&] {
    copy_limit limit(*p.pool);
    return load_tree(p.resolve(), limit);
  }));
  return draft_of(copy, pickles);
}

draft draft_of_rest(nb::handle object, bool pickles) {
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()))
    return draft_of_sequence(object, pickles);
  if (PyDict_Check(object.ptr())) return draft_of_mapping(object, pickles);
  if (PyByteArray_Check(object.ptr()) || PyMemoryView_Check(object.ptr()))
    return draft_of_buffer(object, pickles);
  if (nb::isinstance<dict_proxy>(object))
    return draft_of_proxy(instance_of<dict_proxy>(object), pickles);
  if (nb::isinstance<list_proxy>(object))
    return draft_of_proxy(instance_of<list_proxy>(object), pickles);
  if (pickles) return draft_of_owned(pickled(object));
  raise(PyExc_TypeError,
        "a pool holds None, bool, int, float, str, bytes, list, tuple and dict, not " +
            type_of(object) + "; store what it is made of");
}

draft draft_of_integer(nb::handle number, bool pickles) {
  if (const auto value = integer_of(number)) return draft_of_scalar(*value);
  if (pickles) return draft_of_owned(pickled(number));
  raise_too_large();
}

void check_depth(unsigned depth) {
  if (depth > max_copy_depth)
    throw library_error(
        {errc::invalid_argument, "lists and dicts nested " + std::to_string(depth) +
                                     " deep are not copied at once; go down by hand"});
}

}  // namespace

std::optional<std::string_view> characters_in(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return text_of(object);
  if (PyBytes_Check(object.ptr())) return bytes_of(object);
  return std::nullopt;
}

scalar key_of(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return text_of(object);
  if (PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr())) {
    if (const auto value = integer_of(object)) return *value;
    raise_too_large();
  }
  raise(PyExc_TypeError, "a key in a pool is a str or an int, not " + type_of(object));
}

draft draft_of(nb::handle object, bool pickles) {
  STELE_ASSERT(holds_gil());
  PyObject* const o = object.ptr();
  if (PyUnicode_Check(o)) return draft_of_scalar(text_of(object));
  if (PyBool_Check(o)) return draft_of_scalar(o == Py_True);
  if (PyLong_Check(o)) return draft_of_integer(object, pickles);
  if (PyFloat_Check(o)) return draft_of_scalar(PyFloat_AS_DOUBLE(o));
  if (PyBytes_Check(o)) return draft_of_bytes(object, pickles);
  if (o == Py_None) return {};
  return draft_of_rest(object, pickles);
}

void store(document_value& to, const draft& from) {
  STELE_ASSERT(in_transaction());
  STELE_ASSERT(from.is_whole());
  if (from.kind == value_kind::list) {
    document_list& l = to.make_list();
    for (const draft& item : from.items) store(l.append({}), item);
  } else if (from.kind == value_kind::dict) {
    document_dict& d = to.make_dict();
    for (std::size_t i = 0; i < from.items.size(); ++i) store(d[from.keys[i]], from.items[i]);
  } else {
    to = from.value;
  }
}

namespace {

[[noreturn]] void throw_damaged(const char* what) {
  throw failure({errc::corrupt, std::string("the content is damaged: ") + what +
                                    "; check the pool, or restore it from a copy"});
}

}  // namespace

void copy_limit::take(const scalar_copy& value) {
  const std::size_t bytes = sizeof(document_value) + value.chars().size();
  if (bytes > left_) throw_damaged("values are in several places of it");
  left_ -= bytes;
}

Py_ssize_t size_of(std::size_t items, const open_pool& in) {
  if (items > in.core().size() / sizeof(document_value))
    throw_damaged("a list or dict says that it has more items than the pool has room for");
  return static_cast<Py_ssize_t>(items);
}

scalar_copy load_key(const document_value& from, copy_limit& limit) {
  STELE_ASSERT(in_transaction());
  scalar_copy key = from.load();
  limit.take(key);
  return key;
}

loaded load(const document_value& from, copy_limit& limit) {
  loaded l{load_key(from, limit)};
  if (l.value.kind() == value_kind::list) l.container = &from.list(), l.id = from.list().id();
  if (l.value.kind() == value_kind::dict) l.container = &from.dict(), l.id = from.dict().id();
  STELE_ASSERT((l.container != nullptr) ==
               (l.value.kind() == value_kind::list || l.value.kind() == value_kind::dict));
  return l;
}

loaded_tree load_tree(const document_value& from, copy_limit& limit, unsigned depth) {
  if (from.kind() == value_kind::list) return load_tree(from.list(), limit, depth + 1);
  if (from.kind() == value_kind::dict) return load_tree(from.dict(), limit, depth + 1);
  return {load_key(from, limit)};
}

loaded_tree load_tree(const document_list& from, copy_limit& limit, unsigned depth) {
  check_depth(depth);
  loaded_tree tree{scalar_copy(value_kind::list, 0, {})};
  limit.take(tree.value);
  from.for_each([&](const document_value& v) { tree.items.push_back(load_tree(v, limit, depth)); });
  return tree;
}

loaded_tree load_tree(const document_dict& from, copy_limit& limit, unsigned depth) {
  check_depth(depth);
  loaded_tree tree{scalar_copy(value_kind::dict, 0, {})};
  limit.take(tree.value);
  from.for_each([&](const document_value& k, const document_value& v) {
    tree.keys.push_back(load_key(k, limit));
    tree.items.push_back(load_tree(v, limit, depth));
  });
  STELE_ASSERT(tree.keys.size() == tree.items.size());
  return tree;
}

namespace {

template <class Container>
Container& resolve_as(const proxy& p, const char* what) {
  STELE_ASSERT(p.pool != nullptr && p.at != nullptr);
  // The id is read, and what it stands for is used, in one transaction.
  STELE_ASSERT(in_transaction());
  auto& c = *static_cast<Container*>(p.at);
  if (c.id() != p.id)
    throw library_error(
        {errc::not_found,
         p.pool->path() + ": this " + what +
             " is not in the pool any more: it was deleted or overwritten, or the transaction "
             "that made it was rolled back"});
  return c;
}

}  // namespace

document_dict& dict_proxy::resolve() const {
  return resolve_as<document_dict>(*this, "dict");
}
document_list& list_proxy::resolve() const {
  return resolve_as<document_list>(*this, "list");
}

nb::object to_python(const scalar_copy& value) {
  STELE_ASSERT(holds_gil());
  const auto size = static_cast<Py_ssize_t>(value.chars().size());
  PyObject* made = nullptr;
  switch (value.kind()) {
    case value_kind::boolean:
      made = PyBool_FromLong(value.word() != 0);
      break;
    case value_kind::integer:
      made = PyLong_FromLongLong(static_cast<long long>(value.word()));
      break;
    case value_kind::real:
      made = PyFloat_FromDouble(std::bit_cast<double>(value.word()));
      break;
    case value_kind::text:
      made = PyUnicode_DecodeUTF8(value.chars().data(), size, nullptr);
      break;
    case value_kind::bytes:
      made = PyBytes_FromStringAndSize(value.chars().data(), size);
      break;
    default:
      return nb::none();
  }
  if (made == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
    PyErr_Clear();
    throw_library_error(errc::corrupt,
                        "the content is damaged: a text in it is not UTF-8; check the pool, or "
                        "restore it from a copy");
  }
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

namespace {

nb::object to_python(const open_pool& pool, const scalar_copy& value) {
  if (pool.pickles() && value.kind() == value_kind::bytes && is_pickle(value.chars()))
    return unpickled(value.chars());
  return python::to_python(value);
}

}  // namespace

nb::object to_python(const std::shared_ptr<open_pool>& pool, const loaded& l) {
  if (l.value.kind() == value_kind::list) return nb::cast(list_proxy{{pool, l.container, l.id}});
  if (l.value.kind() == value_kind::dict) return nb::cast(dict_proxy{{pool, l.container, l.id}});
  return to_python(*pool, l.value);
}

nb::object to_python(const open_pool& pool, const loaded_tree& tree) {
  if (tree.value.kind() == value_kind::list) {
    nb::list to;
    for (const loaded_tree& item : tree.items) to.append(to_python(pool, item));
    return to;
  }
  if (tree.value.kind() != value_kind::dict) return to_python(pool, tree.value);
  STELE_ASSERT(tree.keys.size() == tree.items.size());
  nb::dict to;
  for (std::size_t i = 0; i < tree.items.size(); ++i)
    to[python::to_python(tree.keys[i])] = to_python(pool, tree.items[i]);
  return to;
}

}  // namespace stele::python
