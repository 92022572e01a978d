// The entry in the interpreter's dict of a thread; see thread_end.h.
#include "thread_end.h"

#include <base/assert.h>
#include "transactions.h"

#include <utility>

namespace stele::python {

namespace {

constexpr const char* key = "stele._stele.open";

struct kept {
  PyObject* object = nullptr;
  transactions* in = nullptr;
};
constinit thread_local kept* of_this_thread = nullptr;  // in the thread's dict

// At the interpreter's end another thread may call this. The transaction then stays open, as at a
// crash, and so does the pool.
void end(PyObject* capsule) noexcept {
  auto* const k = static_cast<kept*>(PyCapsule_GetPointer(capsule, key));
  STELE_ASSERT(k != nullptr);
  STELE_ASSERT(k->object == nullptr || k->in != nullptr);
  STELE_ASSERT(holds_gil());
  if (k == of_this_thread) of_this_thread = nullptr;
  if (k->object != nullptr && k->in->abandon()) Py_DECREF(k->object);
  delete k;
}

kept& kept_for_this_thread() {
  STELE_ASSERT(holds_gil());
  if (of_this_thread != nullptr) return *of_this_thread;
  auto fresh = std::make_unique<kept>();
  PyObject* const dict = PyThreadState_GetDict();
  const auto capsule = nb::steal(PyCapsule_New(fresh.get(), key, &end));
  if (!capsule.is_valid()) throw nb::python_error();
  kept* const k = fresh.release();  // owned by the capsule
  if (dict == nullptr || PyDict_SetItemString(dict, key, capsule.ptr()) != 0)
    throw nb::python_error();
  return *(of_this_thread = k);
}

}  // namespace

void prepare_to_keep() {
  (void)kept_for_this_thread();
}

void keep_until_thread_ends(nb::handle object, transactions& in) noexcept {
  STELE_ASSERT(holds_gil());
  STELE_ASSERT(of_this_thread != nullptr);
  kept& k = *of_this_thread;
  STELE_ASSERT(k.object == nullptr);
  k.object = object.inc_ref().ptr();
  k.in = &in;
}

void keep_no_longer() noexcept {
  STELE_ASSERT(holds_gil());
  if (of_this_thread != nullptr) Py_XDECREF(std::exchange(of_this_thread->object, nullptr));
}

}  // namespace stele::python
