// Values between Python and a pool's document.
//
// No Python object is touched inside a transaction. Values to store are converted to a draft before
// it, values read are a `loaded`; both are plain C++. A draft refers to the characters of Python
// objects, which the caller's arguments keep alive. Drafts of lists and dicts hold their own
// references.
#pragma once

#include "open_pool.h"

#include <vector>

namespace stele::python {

// A value to be stored.
struct draft {
  scalar value;
  value_kind kind = value_kind::none;
  std::vector<draft> items;  // of a list, or a dict's values
  std::vector<scalar> keys;  // of a dict
  nb::object source;         // owner of characters that nothing else keeps alive

  // For assertions: it has the members of its kind, and no others.
  bool is_whole() const noexcept {
    if (kind == value_kind::dict) return keys.size() == items.size();
    return keys.empty() && (kind == value_kind::list || (items.empty() && value.kind() == kind));
  }
};

// A value that was read.
struct loaded {
  scalar_copy value;
  void* container = nullptr;  // the list or dict, with its id
  std::uint64_t id = 0;
};
// A value with everything in it.
struct loaded_tree {
  scalar_copy value;
  std::vector<loaded_tree> items{};
  std::vector<scalar_copy> keys{};
};

// Sets the interpreter's error and throws nb::python_error.
[[noreturn]] void raise(PyObject* type, const std::string& sentence);

// The characters of a str, as UTF-8, or of bytes; empty for another type. The caller keeps the
// object alive.
std::optional<std::string_view> characters_in(nb::handle object);
// Throw nb::python_error: TypeError, OverflowError, RecursionError. `pickles`: a value of a type
// that a pool does not hold is pickled, and what pickling raises is thrown.
scalar key_of(nb::handle object);
draft draft_of(nb::handle object, bool pickles);

// Bounds the bytes copied out of a pool at once. In a sound pool no value is in two places, so all
// values together have no more bytes than the pool. Content that is damaged, or made to be endless,
// exceeds that: take() throws failure, errc::corrupt.
class copy_limit {
 public:
  explicit copy_limit(const open_pool& of) : left_(of.core().size()) {}
  void take(const scalar_copy& value);

 private:
  std::size_t left_;
};

// Call these in a transaction.
void store(document_value& to, const draft& from);
loaded load(const document_value& from, copy_limit& limit);
scalar_copy load_key(const document_value& from, copy_limit& limit);
loaded_tree load_tree(const document_value& from, copy_limit& limit, unsigned depth = 0);
loaded_tree load_tree(const document_list& from, copy_limit& limit, unsigned depth = 0);
loaded_tree load_tree(const document_dict& from, copy_limit& limit, unsigned depth = 0);
// Of a list or dict. Throws failure, errc::corrupt, if no container can have so many items.
Py_ssize_t size_of(std::size_t items, const open_pool& in);

// A list or dict that Python code refers to. It may have been destroyed: call resolve() before each
// use, in the same transaction.
struct proxy {
  std::shared_ptr<open_pool> pool;
  void* at = nullptr;
  std::uint64_t id = 0;  // 0: the root, which is never destroyed
};
struct dict_proxy : proxy {
  document_dict& resolve() const;
};
struct list_proxy : proxy {
  document_list& resolve() const;
};

// The T of an object whose type is T's class. Throws TypeError if the object was made by __new__
// alone.
template <class T>
T& instance_of(nb::handle object) {
  STELE_ASSERT(nb::isinstance<T>(object));
  if (!nb::inst_ready(object)) raise(PyExc_TypeError, "an object that was made without a pool");
  return *nb::inst_ptr<T>(object);
}

// The second and third unpickle if the pool was opened with pickle=True, and throw what unpickling
// raises.
nb::object to_python(const scalar_copy& value);
nb::object to_python(const std::shared_ptr<open_pool>& pool, const loaded& value);
nb::object to_python(const open_pool& pool, const loaded_tree& tree);

}  // namespace stele::python
