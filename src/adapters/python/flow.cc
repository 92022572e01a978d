// The running asyncio task and context; see flow.h.
#include "flow.h"

namespace stele::python {

namespace nb = nanobind;

namespace {

// Not valid outside of tasks. Does not import asyncio: without it there is no task.
nb::object current_task() {
  static PyObject *running_loop = nullptr, *task_of_loop = nullptr;  // kept for good
  if (running_loop == nullptr) {
    const auto asyncio = nb::steal(PyImport_GetModule(nb::str("asyncio").ptr()));
    if (!asyncio.is_valid() || !nb::hasattr(asyncio, "current_task")) {
      PyErr_Clear();
      return {};
    }
    task_of_loop = nb::object(asyncio.attr("current_task")).release().ptr();
    running_loop = nb::object(asyncio.attr("_get_running_loop")).release().ptr();
  }
  const nb::object loop = nb::handle(running_loop)();
  if (loop.is_none()) return {};
  nb::object task = nb::handle(task_of_loop)(loop);
  return task.is_none() ? nb::object() : task;
}

PyObject* current_context() {
  return PyThreadState_Get()->context;
}

}  // namespace

flow flow::current() {
  flow now;
  now.task_ = current_task();
  // A thread gets its context when one is first asked for.
  if (current_context() == nullptr && !nb::steal(PyContext_CopyCurrent()).is_valid())
    throw nb::python_error();
  now.context_ = nb::borrow(current_context());
  return now;
}

bool flow::is_current() const {
  const nb::object task = current_task();
  if (task.is_valid() || task_.is_valid()) return task.ptr() == task_.ptr();
  return current_context() == context_.ptr();
}

}  // namespace stele::python
